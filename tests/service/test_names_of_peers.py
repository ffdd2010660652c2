"""A service that starts before the names of its peers exist waits for them."""

from __future__ import annotations

import io

import pytest

from qsctl.errors import NoAnswer, UsageError
from qsctl.service.process import start
from qsctl.service.process.logger import ServiceLog, Verbosity


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(stream: io.StringIO) -> ServiceLog:
    return ServiceLog("Test", Verbosity.WARNINGS, stream=stream)


def unresolved(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    asked: list[int] = []

    def addresses_of(_peers: object) -> tuple[str, ...]:
        asked.append(1)
        if len(asked) <= count:
            raise NoAnswer("the name of the peer b cannot be resolved")
        return ("10.0.0.2",)

    monkeypatch.setattr(start, "addresses_of", addresses_of)
    monkeypatch.setattr(start, "NAMES_PAUSE_S", 0.001)
    return asked


def test_names_are_awaited_and_reported_once(
    monkeypatch: pytest.MonkeyPatch, log: ServiceLog, stream: io.StringIO
) -> None:
    asked = unresolved(monkeypatch, 3)
    start._await_names(["b"], log)
    assert len(asked) == 4
    assert stream.getvalue().count("peer_not_resolved") == 1


def test_a_name_that_never_exists_ends_the_start(monkeypatch: pytest.MonkeyPatch, log: ServiceLog) -> None:
    unresolved(monkeypatch, 10**9)
    monkeypatch.setattr(start, "NAMES_PATIENCE_S", 0.01)
    with pytest.raises(NoAnswer, match="cannot be resolved"):
        start._await_names(["b"], log)


def test_what_is_not_an_address_is_refused_at_once(log: ServiceLog) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        start._await_names(["a b"], log)
