"""The view "What if" as a browser asks it: controls, answers, what is written, and what is refused."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qsctl.sim.replication import simulate_figures
from qsctl.sim.simulate import open_scenario
from qsctl.web._context import AskedSources
from tests.cli.shell import Shell
from tests.web.serving import Page, Stream, served

DEPTH = "profile[trading]/queue[D-1]/max-depth"
SHORT = {"horizon": "300ms", "group[desks]/count": "4", "port[p1]/rate": "40 Mbit/s"}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served() as found:
        yield found


def asked(source: str, *sides: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"page": "p", "source": source, "sides": list(sides), "repetitions": 3, **more}


def headers_of(page: Page) -> dict[str, str]:
    return {"x-qsctl-token": page.access.token, "content-type": "application/json"}


def events(page: Page, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with contextlib.closing(page.connection()) as connection:
        connection.timeout = 600
        body = json.dumps(question).encode()
        connection.request("POST", "/api/what-if/answer", body, headers_of(page))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        stream = Stream(response)
        while True:
            try:
                yield stream.next()
            except EOFError:
                return


def last_answer(page: Page, question: dict[str, Any]) -> dict[str, Any]:
    found = list(events(page, question))
    assert found[-1] == {"kind": "done"}, found[-1]
    return [each for each in found if each["kind"] == "answer"][-1]


def queue_of(answer: dict[str, Any], name: str, side: int = 0) -> dict[str, Any]:
    return next(each for each in answer["sides"][side]["queues"] if each["queue"] == name)


@pytest.mark.timeout(900)
def test_answer_has_the_figures_of_simulate_with_the_same_seed(page: Page) -> None:
    settings = {**SHORT, DEPTH: "300"}
    answer = last_answer(page, asked("burst", settings, seed=7))
    scenario = open_scenario("burst", {}, settings, 7)
    runs = [next(each for each in simulate_figures(scenario, number) if each.queue == "D-1") for number in range(3)]
    mean = sum(each.loss_ratio for each in runs) / 3
    assert queue_of(answer, "D-1")["measures"]["loss_ratio"][0] == pytest.approx(mean, rel=1e-12)
    assert mean > 0
    assert queue_of(answer, "D-1")["measures"]["time_in_queue_max"][0] == sum(each.wait_max_ns for each in runs) / 3


def test_answers_narrow_with_more_repetitions(page: Page) -> None:
    answers = [each for each in events(page, asked("burst", {**SHORT, DEPTH: "250"})) if each["kind"] == "answer"]
    counts = [each["repetitions"] for each in answers]
    assert counts == sorted(set(counts))
    assert counts[-1] == 3
    if counts[0] == 1:
        assert queue_of(answers[0], "D-1")["measures"]["loss_ratio"][1] is None
    assert queue_of(answers[-1], "D-1")["measures"]["loss_ratio"][1] > 0


def test_difference_of_equal_sides_is_nothing(page: Page) -> None:
    answer = last_answer(page, asked("burst", SHORT, {**SHORT, DEPTH: "2000"}))
    found = next(each for each in answer["differences"] if each["queue"] == "D-1")
    assert found["measures"]["loss_ratio"] == [0.0, 0.0]
    assert found["sentence"] == "With B, D-1 loses the same; the wait of 99 % is unchanged."


def test_difference_has_a_narrower_interval_than_its_sides(page: Page) -> None:
    answer = last_answer(page, asked("burst", {**SHORT, DEPTH: "200"}, {**SHORT, DEPTH: "220"}, repetitions=8))
    widths = [queue_of(answer, "D-1", side)["measures"]["loss_ratio"][1] for side in (0, 1)]
    mean, width = next(each for each in answer["differences"] if each["queue"] == "D-1")["measures"]["loss_ratio"]
    assert mean < 0
    assert width < min(widths)


def test_depth_is_that_of_the_messages(page: Page) -> None:
    answer = last_answer(page, asked("work-queue", {"horizon": "2h"}, repetitions=1, buckets=40))
    depth = queue_of(answer, "jobs")["depth"]
    assert len(depth["low"]) == len(depth["high"]) == len(depth["mean"]) == 40
    assert all(low <= mean <= high for low, mean, high in zip(depth["low"], depth["mean"], depth["high"], strict=True))
    assert min(depth["low"]) >= 0
    assert 0 < max(depth["high"]) <= queue_of(answer, "jobs")["measures"]["backlog_max"][0]


@pytest.mark.slow
def test_every_source_has_controls_whose_positions_the_scenario_accepts(page: Page) -> None:
    sources = page.get("/api/what-if/sources").document["sources"]
    assert {"burst", "work-queue", "preset sqs"} <= {each["name"] for each in sources}
    for source in sources:
        found = page.post("/api/what-if/controls", {"source": source["name"]})
        assert found.status == 200, found.body
        document = found.document
        assert not document["problems"]
        for control in document["controls"]:
            if control["kind"] == "range":
                assert control["text"] in control["positions"]
                assert len(control["positions"]) == len(set(control["positions"]))
        moved = [each for each in document["controls"] if each["kind"] == "range" and each["is_first"]][:4]
        for control in moved:
            checked = {"source": source["name"], "path": control["path"], "text": control["positions"][-1]}
            answer = page.post("/api/what-if/check", checked)
            if answer.status == 200:  # else a rule over several settings refuses it, in words
                assert answer.document["text"] == control["positions"][-1]
            else:
                assert answer.document["error"]["message"]


def test_check_writes_a_text_as_the_scenario_does(page: Page) -> None:
    found = page.post("/api/what-if/check", {"source": "burst", "path": "group[desks]/round-trip", "text": "0.0015s"})
    assert found.document["text"] == "1.5ms"
    assert "1.5ms" in found.document["positions"]


@pytest.mark.parametrize(
    ("request_of", "words"),
    [
        ({"source": "burst", "path": DEPTH, "text": "1"}, "'1' is not a whole number from 2 to 262,144"),
        ({"source": "burst", "path": "nothing/here", "text": "1"}, "nothing"),
        ({"source": "../../etc/passwd", "path": DEPTH, "text": "1"}, "there is no source"),
        ({"source": "burst", "path": DEPTH, "text": "x" * 400}, "the request is not valid"),
        ({"source": "burst", "path": DEPTH, "text": 1}, "the request is not valid"),
        ({"source": "burst", "unknown": 1}, "the request is not valid"),
    ],
)
def test_what_is_not_valid_is_refused_in_words(page: Page, request_of: dict[str, Any], words: str) -> None:
    found = page.post("/api/what-if/check", request_of)
    assert found.status in {400, 404}
    assert words in found.document["error"]["message"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizon": "2000h"}, "about"),
        ({"group[desks]/count": "1000000", "horizon": "1ms"}, "1,000,000 clients"),
        ({"warm-up": "20s"}, "warm-up"),
        ({DEPTH: "deep"}, "'deep' is not"),
    ],
)
def test_question_that_cannot_be_answered_is_refused(page: Page, settings: dict[str, str], words: str) -> None:
    found = page.post("/api/what-if/answer", asked("burst", settings))
    assert found.status == 400
    assert words in found.document["error"]["message"]


def test_setting_that_is_gone_is_left_out_and_reported(page: Page) -> None:
    settings = {"horizon": "1s", "profile[other]/queue[D-1]/max-depth": "5"}
    found = page.post("/api/what-if/controls", {"source": "burst", "settings": settings}).document
    assert [each["path"] for each in found["problems"]] == ["profile[other]/queue[D-1]/max-depth"]
    assert next(each["text"] for each in found["controls"] if each["path"] == "horizon") == "1s"


def test_answer_ends_as_a_whole_body(page: Page) -> None:
    """A body that is cut off is a network error in the browser, although the last event has arrived."""
    with contextlib.closing(page.connection()) as connection:
        body = json.dumps(asked("burst", SHORT, repetitions=1)).encode()
        connection.request("POST", "/api/what-if/answer", body, headers_of(page))
        events = connection.getresponse().read()  # raises IncompleteRead where the body is cut off
    assert events.endswith(b'data: {"kind":"done"}\n\n')


def test_newer_question_of_a_page_ends_the_older_one(page: Page) -> None:
    old = events(page, asked("burst", {"horizon": "10s", DEPTH: "777"}, repetitions=100))
    next(old)
    answer = last_answer(page, asked("burst", {**SHORT, DEPTH: "333"}))
    assert answer["repetitions"] == 3
    assert list(old)[-1] == {"kind": "overtaken"}


def test_question_ends_when_its_reader_leaves(page: Page) -> None:
    with contextlib.closing(page.connection()) as connection:
        body = json.dumps(asked("burst", {"horizon": "10s", DEPTH: "778"}, repetitions=100)).encode()
        connection.request("POST", "/api/what-if/answer", body, headers_of(page))
        Stream(connection.getresponse()).next()
    deadline = time.monotonic() + 60
    while page.context.stream_count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert page.context.stream_count == 0
    assert last_answer(page, asked("burst", {**SHORT, DEPTH: "334"}, page="another"))["repetitions"] == 3


def test_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.xml"
    text = Path("fixtures/scenarios/burst.xml").read_text().replace('count="40"', 'count="4"')
    path.write_text(text)
    with served(what_if=AskedSources((path,))) as page:
        of = lambda: {  # noqa: E731
            each["path"]: each["text"]
            for each in page.post("/api/what-if/controls", {"source": str(path)}).document["controls"]
        }
        assert of()["group[desks]/count"] == "4"
        path.write_text(text.replace('count="4"', 'count="12"'))
        assert of()["group[desks]/count"] == "12"
        path.write_text("<scenario")
        found = page.post("/api/what-if/controls", {"source": str(path)})
        assert found.status == 400
        assert "mine.xml" in found.document["error"]["message"]
        path.unlink()
        assert page.post("/api/what-if/controls", {"source": str(path)}).status == 404


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_written_gives_the_figures_that_are_shown(page: Page, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state")
    settings = {**SHORT, DEPTH: "300", "profile[trading]/tcp/maximum-window": "128 KB"}
    shown = queue_of(last_answer(page, asked("burst", settings)), "D-1")["measures"]["loss_ratio"][0]
    wanted = {
        "source": "burst", "settings": settings, "repetitions": 3, "seed": 1, "varied": DEPTH, "queue": "D-1",
        "lost": shown,
    }  # fmt: skip
    forms = {each["name"]: each for each in page.post("/api/what-if/written", wanted).document["written"]}
    assert list(forms) == ["simulate", "size", "xml", "profile-trading", "plan-trading"]
    for name in ("xml", "profile-trading"):
        (tmp_path / forms[name]["file"]).write_text(forms[name]["text"])
    for command in (forms["simulate"]["text"], forms["xml"]["use"], forms["profile-trading"]["use"]):
        assert _loss_ratio(shell, command, tmp_path) == pytest.approx(shown, rel=0.02), command
    sized = json.loads(_run(shell, forms["size"]["text"], tmp_path, "-o", "json"))
    candidate = next(each for each in sized["candidates"] if each["settings"] == {DEPTH: 300})
    assert candidate["evidence"][0]["mean"] == pytest.approx(shown, rel=0.2)  # of other numbers of repetitions
    assert "queueDirect1MaxDepth = 300" in forms["plan-trading"]["text"]
    assert "tcpMaxWindowSize = 128" in forms["plan-trading"]["text"]


@pytest.mark.slow
def test_preset_is_written_as_a_scenario_with_its_settings(page: Page, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state")
    settings = {"horizon": "1h", "queue/consumer[consumers]/count": "3"}
    answer = last_answer(page, asked("preset rabbitmq-quorum", settings))
    shown = answer["sides"][0]["queues"][0]
    wanted = {"source": "preset rabbitmq-quorum", "settings": settings, "repetitions": 3}
    forms = {each["name"]: each for each in page.post("/api/what-if/written", wanted).document["written"]}
    (tmp_path / forms["xml"]["file"]).write_text(forms["xml"]["text"])
    document = json.loads(_run(shell, forms["simulate"]["text"], tmp_path, "-o", "json"))
    arrived = sum(each["arrived_messages"] for each in document["queues"] if each["queue"] == shown["queue"])
    assert arrived == round(3 * shown["arrived"])


def _run(shell: Shell, command: str, folder: Path, *more: str) -> str:
    words = shlex.split(command)
    assert words[0] == "qsctl"
    placed = [word.replace("trading.json", str(folder / "trading.json")) for word in words[1:]]
    placed = [str(folder / word) if word.endswith(".xml") else word for word in placed]
    found = shell(*placed, *more)
    assert found.status in {0, 1}, found.err
    return found.out


def _loss_ratio(shell: Shell, command: str, folder: Path) -> float:
    more = ["--out", str(folder / f"run-{time.monotonic_ns()}"), "-o", "json", "--by", "queue"]
    document = json.loads(_run(shell, command, folder, *more))
    queue = next(each for each in document["queues"] if each["queue"] == "D-1")
    lost = queue["lost_messages"]
    return float(lost / (lost + queue["delivered_messages"]))
