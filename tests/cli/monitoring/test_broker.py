"""`--broker` of show, explain, check and top: a server on loopback, credentials by environment and context."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qsctl.broker.access import Credentials, Secret, parse_address
from qsctl.broker.client import HttpClient
from qsctl.broker.semp import SempBroker
from qsctl.cli.broker_options import PASSWORD, TOKEN, USERNAME
from qsctl.cli.top.broker import BrokerSource
from qsctl.errors import ExitStatus
from qsctl.profiles.listings.model import PRIORITY_QUEUES, ClientConnection, ClientQueues, ListedQueueStatistics
from tests import broker_server as b
from tests.cli.shell import Outcome, Shell

TOKEN_TEXT = "t0k3n-of-ops"


def story() -> b.BrokerState:
    """One client that does not read, and one that does."""
    state = b.BrokerState()
    state.vpns["default"]["clients"] = [
        b.client_object("desk-1", slowSubscriber=True, txDiscardedMsgCount=38_280, averageTxMsgRate=900),
        b.client_object("desk-2"),
    ]
    state.queues = [
        ClientQueues(
            name, message_vpn="default", client_profile="default", slow_subscriber=name == "desk-1",
            queues=tuple(
                ListedQueueStatistics(queue, *((90, 95, 100, 100, 38_280, 7) if (name, queue) == ("desk-1", "D-1") else
                                               (0, 0, 1, 20_000, 0, 5)))
                for queue in PRIORITY_QUEUES
            ),
        )
        for name in ("desk-1", "desk-2")
    ]  # fmt: skip
    state.connections = [
        ClientConnection("desk-1", "default", "192.0.2.1:51022", "192.0.2.9:55555", "ESTABLISHED", 0, 262_144, 1460,
                         10**8, 900, 0, 262_144, 0, 0, 86_400, 93.33),
        ClientConnection("desk-2", "default", state="ESTABLISHED", blocked_percent=0.0),
    ]  # fmt: skip
    state.add_profile("default", "default", queueDirect1MaxDepth=100)
    return state


@pytest.fixture
def server() -> Iterator[b.BrokerServer]:
    with b.serving(story()) as opened:
        yield opened


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QSCTL_CONFIG", str(tmp_path / "config" / "config.toml"))
    monkeypatch.setenv(USERNAME, b.USERNAME)
    monkeypatch.setenv(PASSWORD, b.PASSWORD)
    return Shell(tmp_path / "state")


def no_secret(outcome: Outcome) -> Outcome:
    for secret in (b.PASSWORD, TOKEN_TEXT, Credentials(b.USERNAME, Secret(b.PASSWORD)).encoded()):
        assert secret not in outcome.out + outcome.err
    return outcome


def test_what_makes_a_subscriber_slow_is_explained_of_a_broker(server: b.BrokerServer, shell: Shell) -> None:
    done = no_secret(shell("explain", "slow-subscriber", "--broker", server.url, "-o", "json"))
    (client,) = done.document["clients"]
    assert (client["client"], client["reason"], client["discarded_messages"]) == ("desk-1", "application", 38_280)
    assert client["blocked_percent"] == 93.33
    assert done.document["source"] == server.url


def test_discards_are_explained_of_a_broker(server: b.BrokerServer, shell: Shell) -> None:
    server.state.stats = "<egress-discards><message-elided>5</message-elided></egress-discards>"
    done = shell("explain", "discards", "--broker", server.url, "-o", "json")
    causes = {(each["of"], each["cause"]): each["messages"] for each in done.document["causes"]}
    assert causes["queue D-1", "transmit_congestion"] == 38_280
    assert {"of": "client desk-1", "side": "egress", "messages": 38_280} in done.document["totals"]


@pytest.mark.parametrize(("status", "answered"), [(403, {}), (404, {}), (200, {"not": "XML"})])
def test_without_semp_v1_the_rest_is_explained_with_a_note(
    server: b.BrokerServer, shell: Shell, status: int, answered: object
) -> None:
    server._show = lambda request, _: b.answer(request, status, answered)  # type: ignore[method-assign]
    done = shell("explain", "slow-subscriber", "--broker", server.url, "-o", "json")
    assert [each["reason"] for each in done.document["clients"]] == ["unknown"]
    assert any("SEMP v1 was refused" in note for note in done.document["notes"])


def test_clients_are_shown_as_the_broker_lists_them(server: b.BrokerServer, shell: Shell) -> None:
    for words, field, expected in (
        (("stats", "queue"), "discarded_messages", 38_280),
        (("connections", "wide"), "send_queue_bytes", 262_144),
        (("slow-subscriber",), "slow_subscriber", True),
    ):
        done = shell("show", "client", "desk-1", *words, "--broker", server.url, "-o", "jsonl")
        rows = [json.loads(line) for line in done.out.splitlines()]
        assert expected in [row[field] for row in rows], words
        assert {row["client"] for row in rows} == {"desk-1"}
    assert shell("show", "client", "none", "stats", "queue", "--broker", server.url).status == ExitStatus.NOT_FOUND


def test_profiles_are_shown_as_the_broker_lists_them(server: b.BrokerServer, shell: Shell) -> None:
    done = shell("show", "client-profile", "default", "detail", "--broker", server.url, "-o", "json")
    assert done.document[0]["d_1_max_depth_work_units"] == 100
    refused = shell("show", "cspf", "neighbor", "x", "stats", "queues", "--broker", server.url)
    assert refused.status == ExitStatus.REFUSED


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("client", "desk-*", "-w", "0", "-c", "50000"), 1, "desk-1 D-1: discarded_messages is 38280"),
        (("client", "desk-1", "-m", "blocked_percent", "-c", "50"), 2, "desk-1: blocked_percent is 93.33%"),
        (("queue", "D-1", "-w", "50", "-c", "90"), 2, "desk-1 D-1: depth_percent is 95%"),
        (("queue", "G-1", "-w", "50"), 0, "OK"),
    ],
)
def test_figures_of_a_broker_are_checked(
    server: b.BrokerServer, shell: Shell, words: tuple[str, ...], status: int, text: str
) -> None:
    done = shell("check", *words, "--broker", server.url)
    assert (done.status, text in done.out) == (status, True), done.out


def test_a_broker_that_does_not_answer_is_unknown_to_monitoring(shell: Shell) -> None:
    done = no_secret(shell("check", "client", "*", "-w", "0", "--broker", "http://127.0.0.1:1"))
    assert (done.status, done.out.startswith("UNKNOWN: ")) == (3, True)


def test_credentials_of_a_context_are_used_for_its_broker_alone(
    server: b.BrokerServer, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(USERNAME)
    add = ("context", "add", "site", "--broker", server.url, "--broker-username", b.USERNAME)
    done = no_secret(shell(*add, "--broker-secret", "password", stdin=f"{b.PASSWORD}\n"))
    assert done.status == 0, done.err
    file = Path(os.environ["QSCTL_CONFIG"])
    assert file.stat().st_mode & 0o777 == 0o600
    for place in ("site", server.url):
        assert shell("explain", "discards", "--broker", place).status == 0
    with b.serving(story()) as other:
        refused = no_secret(shell("explain", "discards", "--broker", other.url))
        assert refused.status == ExitStatus.REFUSED
        assert "Authorization" not in other.headers[0]
    listed = no_secret(shell("context", "list", "-o", "json"))
    assert (listed.document[0]["broker"], listed.document[0]["broker_secret"]) == (server.url, "password")
    no_secret(shell("context", "list"))
    file.chmod(0o644)
    open_to_all = no_secret(shell("explain", "discards", "--broker", "site"))
    assert (open_to_all.status, "chmod 600" in open_to_all.err) == (ExitStatus.REFUSED, True)
    assert shell("context", "list").status == 0, "what others may read is listed, and mended by the next change"
    shell("context", "use", "site")
    assert shell("explain", "discards", "--broker", "site").status == 0


def test_a_token_comes_before_a_password(server: b.BrokerServer, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    server.is_open = True
    monkeypatch.setenv(TOKEN, TOKEN_TEXT)
    no_secret(shell("explain", "discards", "--broker", server.url))
    assert {each["Authorization"] for each in server.headers} == {f"Bearer {TOKEN_TEXT}"}


def test_a_context_of_a_broker_has_no_service_and_does_not_choose_one(server: b.BrokerServer, shell: Shell) -> None:
    assert shell("context", "add", "site", "--broker", server.url, "--use").status == 0
    assert shell("get", "data").status == 0, "of the embedded service"
    assert "--broker" not in shell("check", "queue", "Q", "-w", "1").out


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("explain", "discards", "--broker", "nowhere"), ExitStatus.NOT_FOUND, "no context 'nowhere'"),
        (("explain", "discards", "--broker", "http://u:p4ss@h"), ExitStatus.USAGE, "do not belong into an address"),
        (("explain", "discards", "f", "--broker", "http://h"), ExitStatus.USAGE, "both given"),
        (("explain", "discards"), ExitStatus.USAGE, "there is no source"),
        (
            ("show", "client", "*", "stats", "queue", "--run", "r", "--broker", "http://h"),
            ExitStatus.USAGE,
            "both given",
        ),
        (("top", "--run", "r", "--broker", "http://h"), ExitStatus.USAGE, "both given"),
        (("context", "add", "x"), ExitStatus.USAGE, "nothing to name"),
        (("context", "add", "x", "--service", "embedded:", "--broker-username", "u"), ExitStatus.USAGE, "is missing"),
        (("context", "add", "x", "--broker", "http://u:p4ss@h"), ExitStatus.USAGE, "do not belong into an address"),
        (("context", "add", "x", "--broker", "http://h", "--broker-secret", "password"), ExitStatus.USAGE, "of a user"),
        (("context", "add", "x", "--broker", "http://h", "--broker-secret", "token"), ExitStatus.USAGE, "is empty"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_one_error(
    shell: Shell, words: tuple[str, ...], status: ExitStatus, text: str
) -> None:
    done = shell(*words, stdin="")
    assert (done.status, text in done.err) == (status, True), done.err
    assert "p4ss" not in done.out + done.err


@pytest.mark.parametrize(
    "fault",
    [b.status(401), b.status(500), b.cut, b.body(b"{"), b.body(b'{"data": ' + b"[" * 10_000),
     b.redirect(f"http://192.0.2.9/?{b.PASSWORD}"), b.status(429, Retry_After="100")],
    ids=["401", "500", "cut", "half", "deep", "redirect", "429"],
)  # fmt: skip
def test_whatever_a_broker_does_a_command_ends_with_one_error_without_secrets(
    server: b.BrokerServer, shell: Shell, fault: b.Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qsctl.broker.client.random.uniform", lambda *_: 0.0)
    server.always = fault
    for words in (("explain", "slow-subscriber"), ("show", "client-profile", "*", "detail")):
        done = no_secret(shell(*words, "--broker", server.url, "--broker-timeout", "500ms"))
        assert done.status in {ExitStatus.NO, ExitStatus.REFUSED, ExitStatus.NO_ANSWER}
        assert done.err.count("Error: ") == 1


def test_credentials_without_encryption_are_warned_of(shell: Shell) -> None:
    done = shell("explain", "discards", "--broker", "http://broker.invalid", "--broker-timeout", "1ms")
    assert "is not encrypted" in done.err
    assert done.status == ExitStatus.NO_ANSWER


def test_top_shows_the_clients_of_a_broker_and_the_queues_of_one(server: b.BrokerServer) -> None:
    @contextmanager
    def opened() -> Iterator[SempBroker]:
        with HttpClient(parse_address(server.url), Credentials(b.USERNAME, Secret(b.PASSWORD))) as client:
            yield SempBroker(client)

    source = BrokerSource(opened)
    look = source.look()
    assert [(row["name"], row["slow"], row["out_per_s"], row["lost_per_s"]) for row in look.rows] == [
        ("desk-1", "yes", 900, None), ("desk-2", "no", 0, None),
    ]  # fmt: skip
    clients = server.state.vpns["default"]["clients"]
    clients[0]["txDiscardedMsgCount"] += 100
    clients[1]["dataTxMsgCount"] += 50
    again = {row["name"]: row for row in source.look().rows}
    assert again["desk-1"]["lost_per_s"] > 0 == again["desk-1"]["out_per_s"]
    assert again["desk-2"]["out_per_s"] > 0 == again["desk-2"]["lost_per_s"]
    queues = source.look("desk-1")
    assert {row["name"]: row["depth"] for row in queues.rows}["D-1"] == 95
    assert server.url in source.title()
    source.close()


def test_a_password_is_typed_on_the_terminal_and_not_shown(
    server: b.BrokerServer, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = [b.PASSWORD]
    asked: list[dict[str, object]] = []

    def prompt(text: str, **named: object) -> str:
        asked.append({"text": text, **named})
        return typed.pop()

    monkeypatch.setattr("qsctl.cli.context.commands.typer.prompt", prompt)
    monkeypatch.setattr("qsctl.cli.context.commands.sys", type("Terminal", (), {"stdin": Terminal()}))
    add = ("context", "add", "site", "--broker", server.url, "--broker-username", b.USERNAME)
    assert no_secret(shell(*add, "--broker-secret", "password")).status == 0
    assert asked == [{"text": "Password for the broker", "hide_input": True, "err": True}]


class Terminal:
    """Standard input on which a person types."""

    def isatty(self) -> bool:
        return True
