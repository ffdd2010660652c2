"""Client profiles of a broker: shown, checked, compared; planned and applied; what is in the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qsctl.cli.broker_options import PASSWORD, USERNAME
from qsctl.errors import ExitStatus
from tests import broker_server as b
from tests.cli.shell import Shell

WEB = {"clientProfileName": "web", "msgVpnName": "default", "queueDirect1MaxDepth": 100, "elidingEnabled": True}


@pytest.fixture
def server() -> Iterator[b.BrokerServer]:
    state = b.BrokerState()
    state.vpns["markets"] = {}
    state.add_profile("default", "default")
    state.add_profile("default", "web", queueDirect1MaxDepth=20_000, queueDirect2MaxDepth=50)
    with b.serving(state) as opened:
        yield opened


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(USERNAME, b.USERNAME)
    monkeypatch.setenv(PASSWORD, b.PASSWORD)
    Path("web.json").write_text(json.dumps(WEB))
    return Shell(tmp_path / "state")


def profile(server: b.BrokerServer, name: str, vpn: str = "default") -> dict[str, Any]:
    return next(each for each in server.state.vpns[vpn]["clientProfiles"] if each["clientProfileName"] == name)


def changes(server: b.BrokerServer) -> list[tuple[str, str]]:
    return [each for each in server.requests if each[0] != "GET"]


def test_profiles_of_a_broker_are_shown_checked_and_compared(server: b.BrokerServer, shell: Shell) -> None:
    at = ("--broker", server.url)
    shown = shell("client-profile", "show", "--name", "web", "--changed", *at, "-o", "json").document
    assert [each["setting"] for each in shown["settings"]] == ["d_2_max_depth_work_units"]
    assert shown["file"] == server.url
    linted = shell("client-profile", "lint", "--name", "web", "--flows", "10", *at, "-o", "json")
    assert linted.document["profile"] == "web"
    differs = shell("client-profile", "diff", "web.json", *at, "-o", "json")
    assert differs.status == ExitStatus.NO
    assert {each["field"] for each in differs.document["differences"]} == {
        "d_1_max_depth_work_units", "d_2_max_depth_work_units", "eliding_enabled",
    }  # fmt: skip
    several = shell("client-profile", "show", *at)
    assert (several.status, "default of message VPN default, web" in several.err) == (ExitStatus.USAGE, True)


def test_a_plan_shows_what_apply_does_and_then_there_is_nothing_to_do(server: b.BrokerServer, shell: Shell) -> None:
    at = ("--broker", server.url)
    planned = shell("client-profile", "plan", "web.json", *at, "-o", "json")
    assert planned.status == ExitStatus.NO
    assert [(row["action"], row["semp_v2"], row["before"], row["after"]) for row in planned.document["changes"]] == [
        ("change", "queueDirect1MaxDepth", 20_000, 100), ("change", "elidingEnabled", False, True),
    ]  # fmt: skip
    assert changes(server) == []
    applied = shell("client-profile", "apply", "web.json", *at, "--yes", "-o", "json")
    assert (applied.status, applied.document["done"]) == (0, 1), applied.err
    assert [method for method, _ in changes(server)] == ["PATCH"]
    assert json.loads(next(each for each in server.bodies if each)) == {
        "queueDirect1MaxDepth": 100, "elidingEnabled": True,
    }  # fmt: skip
    assert profile(server, "web")["queueDirect2MaxDepth"] == 50, "what the file does not state stays"
    assert shell("client-profile", "plan", "web.json", *at).status == 0
    again = shell("client-profile", "apply", "web.json", *at, "--yes", "-o", "json")
    assert (again.document["done"], len(changes(server))) == (0, 1)


def test_every_setting_counts_where_it_is_wanted(server: b.BrokerServer, shell: Shell) -> None:
    shell("client-profile", "apply", "web.json", "--every-setting", "--yes", "--broker", server.url)
    assert profile(server, "web")["queueDirect2MaxDepth"] == 20_000


def test_a_profile_is_created_in_another_message_vpn(server: b.BrokerServer, shell: Shell) -> None:
    server.state.add_profile("markets", "default")
    done = shell(
        "client-profile", "apply", "web.json", "--target-vpn", "markets", "--yes", "--broker", server.url, "-o", "json"
    )
    assert done.status == 0, done.err
    assert {row["action"] for row in done.document["changes"]} == {"create"}
    assert profile(server, "web", "markets")["queueDirect1MaxDepth"] == 100
    assert profile(server, "web")["queueDirect1MaxDepth"] == 20_000


def test_a_profile_is_created_where_a_message_vpn_has_none(server: b.BrokerServer, shell: Shell) -> None:
    done = shell("client-profile", "apply", "web.json", "--target-vpn", "markets", "--yes", "--broker", server.url)
    assert done.status == 0, done.err


def test_nothing_is_changed_without_consent(server: b.BrokerServer, shell: Shell) -> None:
    done = shell("client-profile", "apply", "web.json", "--broker", server.url)
    assert (done.status, "give --yes" in done.err) == (ExitStatus.REFUSED, True)
    assert changes(server) == []


class Terminal:
    """A terminal with a person at it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked_with_what_would_change(
    server: b.BrokerServer, shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    terminal = type("Streams", (), {"stdin": Terminal(), "stderr": Terminal()})
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("qsctl.cli.profiles._desired.sys", terminal)
    monkeypatch.setattr("qsctl.cli.profiles._desired.typer.confirm", confirm)
    done = shell("client-profile", "apply", "web.json", "--broker", server.url)
    assert asked == [f"Change {server.url}?"]
    assert "change default/web: d_1_max_depth_work_units 20000 → 100" in done.err
    assert (done.status, len(changes(server))) == ((0, 1) if answer else (1, 0))


def test_a_change_that_the_broker_refuses_is_one_error(server: b.BrokerServer, shell: Shell) -> None:
    # The broker has other ranges than those that are known here.
    state = server.state
    allowed = b.allowed
    try:
        b.allowed = lambda attribute, value: attribute != "elidingEnabled"
        refused = shell("client-profile", "apply", "web.json", "--yes", "--broker", server.url)
        assert (refused.status, "problem with elidingEnabled" in refused.err) == (ExitStatus.REFUSED, True)
        two = [{**WEB, "clientProfileName": "default", "elidingEnabled": False}, WEB]
        Path("two.json").write_text(json.dumps(two))
        partly = shell("client-profile", "apply", "two.json", "--yes", "--broker", server.url)
        assert (partly.status, "1 of 2 profiles are changed" in partly.err) == (ExitStatus.PARTLY_DONE, True)
    finally:
        b.allowed = allowed
    assert shell("client-profile", "apply", "two.json", "--yes", "--broker", server.url).status == 0, "it goes on"
    assert state is server.state


def test_a_broker_that_accepts_and_does_not_change_is_noticed(server: b.BrokerServer, shell: Shell) -> None:
    handle = server.handle

    def deaf(request: Any) -> None:
        if request.command == "PATCH":
            request.rfile.read(int(request.headers["Content-Length"]))
            b.answer(request, 200, {"data": {}, "meta": {"responseCode": 200}})
        else:
            handle(request)

    server.handle = deaf  # type: ignore[method-assign]
    done = shell("client-profile", "apply", "web.json", "--yes", "--broker", server.url)
    assert (done.status, "has other values: web d_1_max" in done.err) == (ExitStatus.PARTLY_DONE, True)


def test_a_change_that_may_have_been_made_is_not_sent_again(server: b.BrokerServer, shell: Shell) -> None:
    handle = server.handle
    server.handle = lambda request: b.cut(request) if request.command == "PATCH" else handle(request)  # type: ignore[method-assign]
    done = shell("client-profile", "apply", "web.json", "--yes", "--broker", server.url)
    assert (done.status, "whether it was carried out is not known" in done.err) == (ExitStatus.NO_ANSWER, True)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("plan", "web.json"), ExitStatus.USAGE, "no broker is given"),
        (("apply", "web.json#desks", "--broker", "http://h"), ExitStatus.NOT_FOUND, "no client profile of this name"),
        (("show",), ExitStatus.USAGE, "there is no file"),
        (("show", "web.json", "--broker", "http://h"), ExitStatus.USAGE, "both given"),
        (("diff", "web.json"), ExitStatus.USAGE, "there is no file"),
        (("lint", "--broker", "nowhere"), ExitStatus.NOT_FOUND, "no context"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_one_error(
    shell: Shell, words: tuple[str, ...], status: ExitStatus, text: str
) -> None:
    done = shell("client-profile", *words)
    assert (done.status, text in done.err) == (status, True), done.err


def test_two_profiles_of_one_name_do_not_become_one(shell: Shell) -> None:
    Path("two.json").write_text(json.dumps([WEB, {**WEB, "msgVpnName": "markets"}]))
    done = shell("client-profile", "plan", "two.json", "--target-vpn", "x", "--broker", "http://h")
    assert (done.status, "several profiles of one name" in done.err) == (ExitStatus.USAGE, True)


def test_what_a_file_does_not_know_is_not_applied(server: b.BrokerServer, shell: Shell) -> None:
    at = ("--broker", server.url)
    task = "- solace_client_profile: {{name: web, msg_vpn: {}, settings: {{elidingEnabled: true, elidingDelay: {}}}}}\n"
    Path("value.yml").write_text(task.format("default", "'{{ d }}'"))
    Path("name.yml").write_text(task.format("'{{ vpn }}'", 5))
    refused = shell("client-profile", "apply", "value.yml", "--yes", *at)
    assert (refused.status, "the value of eliding_delay_ms is not in the file" in refused.err) == (ExitStatus.NO, True)
    refused = shell("client-profile", "apply", "name.yml", "--yes", *at)
    assert (refused.status, "--target-vpn" in refused.err) == (ExitStatus.USAGE, True)
    assert not changes(server)
    shell("client-profile", "apply", "name.yml", "--yes", "--target-vpn", "default", *at)
    assert profile(server, "web")["elidingDelay"] == 5
