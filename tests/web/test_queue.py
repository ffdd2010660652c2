"""The page of a queue against an embedded service: samples, consumers, dead letters, commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qsctl.cli.service_options import TargetOptions
from qsctl.cli.top.live import LiveSource
from qsctl.web._desk import ServiceDesk
from qsctl.web._feed import PolledSource
from qsctl.web._payload_view import CHARACTERS_MAX, payload_view
from tests.cli.shell import Shell
from tests.web.serving import Page, served

QUEUE = "DomainParticipant/SharedSubscriber/Orders"
SCRIPT = '{"name": "</script><script>alert(1)</script>"}'


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    for words in (
        ("create-queue", "Dead", "--as-dead-letter"),
        ("create-queue", "Orders", "--dead-letter", "Dead", "--max-delivery-retries", "0"),
        ("create-queue", "Archive"),
        ("produce", "Orders", "--text", SCRIPT, "--text", "two"),
    ):
        assert shell(*words).status == 0
    return shell


@contextmanager
def page_of(state_dir: Path, *, allow_changes: bool = False) -> Iterator[Page]:
    desk = ServiceDesk(TargetOptions(state_dir=state_dir))
    feed = PolledSource("service", desk.title, LiveSource(desk.open, "embedded:", keeps_open=False), 0.1)
    with served(feed, desk=desk, allow_changes=allow_changes) as page:
        yield page


def test_samples_are_shown_by_selector_and_in_parts(shell: Shell, tmp_path: Path) -> None:
    with page_of(tmp_path / "state") as page:
        found = page.get(f"/api/queue/samples?name={QUEUE}&count=1").document
        (row,) = found["rows"]
        assert row["payload_kind"] == "json"
        assert json.loads(row["payload"]) == json.loads(SCRIPT)
        assert found["may_be_more"]
        path = f"/api/queue/samples?name={QUEUE}&after={row['position']}&incarnation={found['incarnation']}"
        (second,) = page.get(path).document["rows"]
        assert (second["payload"], second["payload_kind"]) == ("two", "text")
        wrong = page.get(f"/api/queue/samples?name={QUEUE}&select=a%20%3D%3D%20(")
        assert wrong.status == 400
        assert wrong.document["error"]["message"]
        assert (
            page.get(f"/api/queue/samples?name={QUEUE}&select=%40sample_queue_status+%3D+SENT_MESSAGE_STATUS").document[
                "rows"
            ]
            == []
        )


def test_a_position_of_a_queue_that_was_made_again_is_refused(shell: Shell, tmp_path: Path) -> None:
    with page_of(tmp_path / "state") as page:
        found = page.get(f"/api/queue/samples?name={QUEUE}").document
        assert shell("delete-queue", "Orders", "--yes").status == 0
        assert page.get(f"/api/queue/samples?name={QUEUE}").status == 404
        assert shell("create-queue", "Orders").status == 0
        again = page.get(f"/api/queue/samples?name={QUEUE}&after=1&incarnation={found['incarnation']}")
        assert (again.status, "error" in again.document) == (403, True)


def test_a_page_holds_the_lock_of_no_state_directory(shell: Shell, tmp_path: Path) -> None:
    with page_of(tmp_path / "state") as page, page.stream(f"/api/queue?name={QUEUE}") as stream:
        while not stream.next()["rows"]:
            pass
        assert shell("produce", "Orders", "--text", "three").status == 0
        while (found := stream.next())["rows"][0]["depth"] < 3:
            pass
        assert found["histories"][0]["depth"][-1] == 3
        assert page.get(f"/api/queue/consumers?name={QUEUE}").document["rows"] == []


def test_a_directory_without_a_service_is_left_alone(tmp_path: Path) -> None:
    with page_of(tmp_path / "nothing") as page, page.stream("/api/live") as stream:
        while "no service" not in stream.next()["error"]:
            pass
    assert not (tmp_path / "nothing").exists()


def test_dead_letters_are_counted_by_origin_and_reason(shell: Shell, tmp_path: Path) -> None:
    assert shell("consume", "Orders", "--count", "2", "--reject").status == 0
    with page_of(tmp_path / "state") as page:
        assert page.get(f"/api/queue/dead?name={QUEUE}").document["beside"] == [QUEUE.replace("Orders", "Dead")]
        found = page.get("/api/queue/dead?name=Dead").document
        assert found["is_dead_letter"]
        assert [(row["reason"], row["count"]) for row in found["rows"]] == [("MAX_RETRIES", 2)]
        assert page.get("/api/queue/dead?name=Nothing").status == 404


def test_without_consent_no_command_is_tried_or_run(shell: Shell, tmp_path: Path) -> None:
    with page_of(tmp_path / "state") as page:
        for path in ("/api/commands/trial", "/api/commands/run"):
            answer = page.post(path, {"action": "flush", "queue": QUEUE})
            assert answer.status == 403
            assert "--allow-changes" in answer.document["error"]["remedy"]
            assert page.get(path).status == 405
    assert shell("get", "status", "Orders", "-o", "json").document[0]["current_message_count"] == 2


def test_a_command_is_shown_first_and_run_as_shown(shell: Shell, tmp_path: Path) -> None:
    with page_of(tmp_path / "state", allow_changes=True) as page:
        fields = {"action": "move", "queue": QUEUE, "to": "Archive", "limit": 1}
        tried = page.post("/api/commands/trial", fields).document
        state = f"--service embedded: --state-dir {tmp_path / 'state'}"
        assert tried["line"] == f"qsctl move {QUEUE} Archive --limit 1 {state}"
        assert (tried["status"], "1" in tried["printed"]) == (0, True)
        for line in ("", tried["line"].replace("--limit 1", "--limit 2")):
            assert page.post("/api/commands/run", {**fields, "line": line}).status == 403
        assert shell("get", "status", "Archive", "-o", "json").document[0]["current_message_count"] == 0
        assert page.post("/api/commands/run", {**fields, "line": tried["line"]}).document["status"] == 0
        assert shell("get", "status", "Archive", "-o", "json").document[0]["current_message_count"] == 1
        fields = {"action": "flush", "queue": QUEUE}
        tried = page.post("/api/commands/trial", fields).document
        assert "1" in tried["printed"]
        assert page.post("/api/commands/run", {**fields, "line": tried["line"]}).document["status"] == 0
        assert shell("get", "status", "Orders", "-o", "json").document[0]["current_message_count"] == 0


@pytest.mark.slow
def test_dead_letters_are_put_back(shell: Shell, tmp_path: Path) -> None:
    assert shell("consume", "Orders", "--count", "2", "--reject").status == 0
    with page_of(tmp_path / "state", allow_changes=True) as page:
        fields = {"action": "requeue", "queue": "Dead", "reason": "MAX_RETRIES", "came_from": "Orders"}
        tried = page.post("/api/commands/trial", fields).document
        assert "--from Orders --reason MAX_RETRIES" in tried["line"]
        assert page.post("/api/commands/run", {**fields, "line": tried["line"]}).document["status"] == 0
    assert shell("get", "status", "Orders", "-o", "json").document[0]["current_message_count"] == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "shutdown", "queue": QUEUE},
        {"action": "flush", "queue": "--help"},
        {"action": "flush", "queue": ""},
        {"action": "move", "queue": QUEUE},
        {"action": "move", "queue": QUEUE, "to": "-o"},
        {"action": "move", "queue": QUEUE, "to": "Archive", "limit": -1},
        {"action": "requeue", "queue": QUEUE, "reason": "; rm"},
        {"action": "flush", "queue": QUEUE, "select": "(("},
        {"action": "flush", "queue": QUEUE, "more": 1},
        ["flush"],
    ],
)
def test_fields_that_are_no_command_are_refused(tmp_path: Path, fields: object) -> None:
    with page_of(tmp_path / "state", allow_changes=True) as page:
        assert page.post("/api/commands/trial", fields).status == 400


@pytest.mark.parametrize(
    ("payload", "encoding", "kind", "text"),
    [
        ("<b>", "text", "text", "<b>"),
        ("[1,2]", "text", "json", "[\n  1,\n  2\n]"),
        ("[" * 60_000, "text", "text", "[" * CHARACTERS_MAX),
        ("{no", "text", "text", "{no"),
        ({"a": 1}, "json", "json", '{\n  "a": 1\n}'),
        ("AAEC/w==", "base64", "hex", "000000  00 01 02 ff"),
        (None, None, "", ""),
    ],
)
def test_a_content_is_shown_by_its_kind_and_bounded(payload: object, encoding: object, kind: str, text: str) -> None:
    shown = payload_view({"payload": payload, "payload_encoding": encoding})  # type: ignore[dict-item]
    assert shown.kind == kind
    assert shown.text.startswith(text)
    assert len(shown.text) <= CHARACTERS_MAX * 5
    assert shown.is_cut == (payload == "[" * 60_000)


def test_octets_beyond_the_bound_are_cut() -> None:
    import base64

    content = base64.b64encode(b"\xff" * CHARACTERS_MAX).decode()
    assert payload_view({"payload": content, "payload_encoding": "base64"}).is_cut
