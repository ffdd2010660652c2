"""One origin over HTTP: deadlines, sizes, retries, the rate of requests, trust; and that no secret is in any text."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qsctl.broker.access import NOBODY, Address, Credentials, HttpOrigin, Secret, parse_address
from qsctl.broker.client import Allowance, Bounds, HttpClient, words_of
from qsctl.errors import InvalidInput, NoAnswer, NotFound, QsctlError, Refused, UsageError
from tests import broker_server as b
from tests.patience import PATIENCE_S

OPS = Credentials(b.USERNAME, Secret(b.PASSWORD))
QUICK = Bounds(attempt_s=PATIENCE_S, request_s=4 * PATIENCE_S)
PATH = "/SEMP/v2/monitor/msgVpns"


@pytest.fixture
def server() -> Iterator[b.BrokerServer]:
    with b.serving() as opened:
        yield opened


class Pauses(list[float]):
    """What a client would have waited for; it does not."""

    def __call__(self, seconds: float) -> None:
        if seconds:
            self.append(seconds)


def client(server: b.BrokerServer, credentials: Credentials = OPS, bounds: Bounds = QUICK, **named: Any) -> HttpClient:
    return HttpClient(parse_address(server.url), credentials, bounds=bounds, **{"sleep": Pauses(), **named})


def no_secret(error: QsctlError) -> None:
    told = f"{error.message} {error.remedy} {error!r}"
    assert b.PASSWORD not in told
    assert OPS.encoded() not in told


def test_the_body_of_a_success_is_returned_and_credentials_are_sent(server: b.BrokerServer) -> None:
    with client(server) as asked:
        assert b'"default"' in asked.get(PATH)
    assert server.headers[0]["Authorization"] == OPS.header()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_deferred_request_is_retried_after_pauses_that_double_with_jitter(
    server: b.BrokerServer, status: int
) -> None:
    server.faults = [b.status(status)] * 3
    pauses = Pauses()
    with client(server, sleep=pauses) as asked:
        assert asked.get(PATH)
    assert [0.5 <= pause / base <= 1.0 for pause, base in zip(pauses, (0.5, 1.0, 2.0), strict=True)] == [True] * 3


def test_a_server_is_granted_the_pause_that_it_asks_for_within_bounds(server: b.BrokerServer) -> None:
    server.faults = [
        b.status(429, Retry_After="7"),
        b.status(503, Retry_After="999999"),
        b.status(503, Retry_After="x"),
    ]
    pauses = Pauses()
    with client(server, bounds=replace(QUICK, request_s=1e6), sleep=pauses) as asked:
        assert asked.get(PATH)
    assert pauses[:2] == [7.0, QUICK.retry_after_s]
    assert 0.0 < pauses[2] <= 2.0


def test_a_retry_after_may_be_a_date(server: b.BrokerServer) -> None:
    server.faults = [b.status(503, Retry_After="Thu, 01 Jan 1970 00:00:00 GMT")]
    pauses = Pauses()
    with client(server, sleep=pauses) as asked:
        assert asked.get(PATH)
    assert pauses == []


def test_a_server_that_defers_for_good_raises_no_answer(server: b.BrokerServer) -> None:
    server.always = b.status(500)
    with client(server) as asked, pytest.raises(NoAnswer, match="500, status 500 of the test"):
        asked.get(PATH)
    assert len(server.requests) == QUICK.attempts


@pytest.mark.parametrize(
    ("status", "kind"), [(400, Refused), (401, Refused), (403, Refused), (404, NotFound), (418, Refused)]
)
def test_a_refusal_is_not_asked_again(server: b.BrokerServer, status: int, kind: type[QsctlError]) -> None:
    server.always = b.status(status)
    with client(server) as asked, pytest.raises(kind, match=f"{status}, status {status} of the test"):
        asked.get(PATH)
    assert len(server.requests) == 1


def test_an_answer_that_is_cut_is_asked_again_and_then_is_no_answer(server: b.BrokerServer) -> None:
    server.faults = [b.cut, b.cut]
    with client(server) as asked:
        assert asked.get(PATH)
        server.always = b.cut
        with pytest.raises(NoAnswer, match="the answer is cut"):
            asked.get(PATH)


@pytest.mark.timeout(60)  # far less than the server takes
@pytest.mark.parametrize("fault", [b.slow(300.0), b.dripping(300.0)])
def test_an_attempt_ends_at_its_deadline_however_the_server_sends(server: b.BrokerServer, fault: b.Fault) -> None:
    server.always = fault
    bounds = Bounds(attempt_s=0.3, request_s=1000.0, attempts=2)
    with client(server, bounds=bounds) as asked, pytest.raises(NoAnswer, match=r"no whole answer within 0\.3 s"):
        asked.get(PATH)
    assert len(server.requests) == 2


def test_a_refused_connection_raises_no_answer() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        address = Address(HttpOrigin("http", "127.0.0.1", taken.getsockname()[1]))
        with HttpClient(address, OPS, bounds=QUICK, sleep=Pauses()) as asked, pytest.raises(NoAnswer, match="refused"):
            asked.get(PATH)


def test_an_answer_larger_than_allowed_is_refused_before_it_is_whole(server: b.BrokerServer) -> None:
    server.always = b.huge(1 << 30)
    bounds = replace(QUICK, body_bytes=1 << 20)
    with client(server, bounds=bounds) as asked, pytest.raises(InvalidInput, match=r"larger than 1,048,576 bytes"):
        asked.get(PATH)


def test_all_answers_together_are_bounded(server: b.BrokerServer) -> None:
    server.always = b.body(b" " * 600)
    with client(server, bounds=replace(QUICK, total_bytes=1000)) as asked:
        asked.get(PATH)
        with pytest.raises(InvalidInput, match="larger than 400 bytes"):
            asked.get(PATH)
        asked.begin()
        assert asked.get(PATH)


def test_an_answer_that_is_compressed_is_refused(server: b.BrokerServer) -> None:
    server.always = lambda request: b.answer(request, 200, b"x" * 100, Content_Encoding="gzip")
    with client(server) as asked, pytest.raises(InvalidInput, match="compressed"):
        asked.get(PATH)


def test_a_redirection_is_not_followed_and_names_the_place(server: b.BrokerServer) -> None:
    with b.serving() as other:
        server.always = b.redirect(f"{other.url}/elsewhere")
        with client(server) as asked, pytest.raises(Refused, match="is not followed") as caught:
            asked.get(PATH)
        assert other.requests == []
    assert other.url in caught.value.message


def test_a_change_is_repeated_only_where_it_was_not_carried_out(server: b.BrokerServer) -> None:
    target = "/SEMP/v2/config/msgVpns/default/clientProfiles/web"
    server.state.add_profile("default", "web")
    with client(server) as asked:
        server.faults = [b.status(503), b.status(429)]
        asked.change("PATCH", target, b'{"queueDirect1MaxDepth": 7}', "application/json")
        assert len(server.requests) == 3
        for fault, words in ((b.status(500), "500"), (b.cut, "whether it was carried out is not known")):
            server.requests.clear()
            server.faults = [fault]
            with pytest.raises(NoAnswer, match=words):
                asked.change("PATCH", target, b'{"queueDirect1MaxDepth": 8}', "application/json")
            assert len(server.requests) == 1


def test_a_certificate_is_verified(tmp_path: Path) -> None:
    tls = b.certificate(tmp_path)
    with b.serving(tls=tls) as server:
        with client(server) as asked, pytest.raises(Refused, match="is not trusted: self-signed") as caught:
            asked.get(PATH)
        no_secret(caught.value)
        assert server.requests == []
        with client(server, certificates=tls[0]) as asked:
            assert asked.get(PATH)


def test_a_certificate_of_another_host_is_not_trusted(tmp_path: Path) -> None:
    tls = b.certificate(tmp_path, "DNS:other.example")
    with (
        b.serving(tls=tls) as server,
        client(server, certificates=tls[0]) as asked,
        pytest.raises(Refused, match="is not trusted: IP address mismatch"),
    ):
        asked.get(PATH)


def test_a_file_without_certificates_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    for name, words in (("ca.pem", "it has no certificate"), ("missing.pem", "No such file")):
        with pytest.raises(InvalidInput, match=words):
            HttpClient(parse_address("https://localhost"), NOBODY, tmp_path / name)


def test_a_server_that_sends_credentials_back_does_not_get_them_printed(server: b.BrokerServer) -> None:
    words = f"you are {b.USERNAME}:{b.PASSWORD}, {OPS.header()}"
    server.always = lambda request: b.answer(request, 403, b.refusal(1, words))
    with client(server) as asked:
        with pytest.raises(Refused) as refused:
            asked.get(PATH)
        no_secret(refused.value)
        server.always = b.redirect(f"http://elsewhere/{OPS.encoded()}")
        with pytest.raises(Refused) as redirected:
            asked.get(PATH)
        no_secret(redirected.value)
        server.always = b.body(OPS.header().encode())
        assert OPS.encoded().encode() not in asked.get(PATH)
        assert b.PASSWORD not in repr(vars(asked))


def test_a_secret_has_no_text_of_its_own() -> None:
    token = Credentials(token=Secret("t0k3n-of-ops"))
    assert "t0k3n" not in f"{token} {token!r} {token.token} {Secret('t0k3n')!r}"
    assert token.header() == "Bearer t0k3n-of-ops"
    assert not NOBODY.is_given
    assert NOBODY.header() == ""


@pytest.mark.parametrize(
    "named",
    [{"username": "a:b"}, {"username": "a\nb"}, {"password": Secret("a\rb")}, {"token": Secret("tök")},
     {"token": Secret("a\r\nX: y")}, {"token": Secret("t" * 5000)}],
)  # fmt: skip
def test_credentials_that_no_header_can_carry_are_refused_without_being_shown(named: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Credentials(**named)
    for secret in named.values():
        if isinstance(secret, Secret):
            assert secret.reveal() not in caught.value.message


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://Broker.example", "https://broker.example"),
        ("https://broker.example:943/", "https://broker.example:943"),
        ("http://[::1]:8080/SEMP", "http://[::1]:8080"),
        ("https://proxy.example/one/SEMP/", "https://proxy.example/one"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert str(parse_address(text)) == address


@pytest.mark.parametrize(
    "text",
    ["ftp://h", "https://", "//h", "https://ops:s3cr3t@h", "https:ops:s3cr3t@h", "https://h:99999", "https://h?x=1",
     "https://h/#x", "https://h ost", "https://h\r\nX: y", f"https://{'h' * 5000}"],
)  # fmt: skip
def test_what_is_no_address_is_refused_without_credentials_in_the_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert "s3cr3t" not in caught.value.message + caught.value.remedy


def test_no_more_requests_than_a_broker_accepts_are_sent() -> None:
    allowance = Allowance(10.0)
    now, sent = 0.0, []
    for _ in range(50):
        now += allowance.wait_s(now)
        sent.append(now)
    assert sent[9] == 0.0
    for first, last in itertools.pairwise(sent[9:]):
        assert last - first == pytest.approx(0.1)
    now += 100.0
    assert [allowance.wait_s(now) for _ in range(11)] == [0.0] * 10 + [pytest.approx(0.1)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"meta": {"error": {"description": "no"}}}', "no"),
        (b'{"status": "error", "error": "bad query"}', "bad query"),
        (b"<rpc-reply><execute-result code='fail' reason='denied'/></rpc-reply>", "denied"),
        (b"[" * 100_000, ""),
        (b"[1]", ""),
        (b'{"meta": 3, "error": 4}', ""),
        (b"\xff", ""),
    ],
    ids=["v2", "prometheus", "v1", "deep", "list", "kinds", "octets"],
)
def test_the_words_of_a_refusal(body: bytes, words: str) -> None:
    assert words_of(body) == words
