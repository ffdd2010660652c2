"""Signatures of commands: what they cover, when they count, and what a service remembers."""

from __future__ import annotations

import hashlib
import hmac
import struct
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.config.signing_keys import SigningKey
from qsctl.core.admin.command import DeleteQueue, FlushQueue, GetStatus, Shutdown
from qsctl.errors import UsageError
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.resource import parse_resource
from qsctl.transport.dds.wire import signed_commands
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import request_from_octets, wire_request
from qsctl.transport.dds.wire.signed_commands import (
    CLOCK_DIFFERENCE_MAX_NS,
    CommandVerifier,
    DenialCause,
    UnauthorizedCommand,
    needs_signature,
    run_of,
    signature_of,
)
from qsctl.transport.dds.wire.wire_types import (
    CommandActionKind,
    OriginalCommandRequest,
    ServiceKind,
    UnsignedCommandRequest,
    WireCommandRequest,
)

QUEUE = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders")
KEY, OTHER = SigningKey(b"k" * 32), SigningKey(b"o" * 32)
RUN, OTHER_RUN = b"run 0001", b"run 0002"
NOW = 1_700_000_000 * SECOND_NS
IDENTITY = SampleIdentity(Guid(b"0123456789abcdef"), 7)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def verifier(clock: Clock) -> CommandVerifier:
    return CommandVerifier([KEY], RUN, clock)


DELETE = DeleteQueue(QUEUE)


def request(command: Any = DELETE, target: str = "Billing") -> WireCommandRequest:
    return wire_request(command, target, IDENTITY)


def signed(key: SigningKey = KEY, run: bytes = RUN, at: int = NOW, **values: Any) -> WireCommandRequest:
    made = request(**values)
    made.signature = signature_of(made, key, [run], now=at)
    return made


def received(made: Any) -> Any:
    """A request as the service's end reads it."""
    return request_from_octets(octets_of(made))


def cause_of(verifier: CommandVerifier, made: Any) -> DenialCause | None:
    try:
        verifier.check(received(made))
    except UnauthorizedCommand as error:
        assert error.message
        assert error.remedy
        return error.cause
    return None


def test_a_signed_command_counts_once(verifier: CommandVerifier) -> None:
    made = signed()
    assert cause_of(verifier, made) is None
    assert cause_of(verifier, made) is DenialCause.REPLAYED
    assert cause_of(verifier, signed()) is None, "the same command signed anew"


@pytest.mark.parametrize("command", [DeleteQueue(QUEUE), FlushQueue(QUEUE, "a = 1"), Shutdown()])
def test_a_command_without_a_signature_is_denied(verifier: CommandVerifier, command: Any) -> None:
    assert cause_of(verifier, request(command)) is DenialCause.UNSIGNED


def test_reading_needs_no_signature_and_all_else_does(verifier: CommandVerifier) -> None:
    assert cause_of(verifier, request(GetStatus(QUEUE))) is None
    free = [each for each in CommandActionKind if not needs_signature(each)]
    assert free == [CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET]
    assert needs_signature(99), "an action without a name"


@pytest.mark.parametrize("kind", [UnsignedCommandRequest, OriginalCommandRequest])
def test_an_earlier_client_may_read_and_nothing_else(verifier: CommandVerifier, kind: Callable[..., Any]) -> None:
    for action, cause in (("GET", None), ("DELETE", DenialCause.UNSIGNED)):
        wanted = CommandActionKind[f"RTI_SERVICE_COMMAND_ACTION_{action}"]
        assert cause_of(verifier, kind("Billing", ServiceKind.RTI_SERVICE_QUEUING_SERVICE, wanted, str(QUEUE))) is cause


@pytest.mark.parametrize("kind", [UnsignedCommandRequest, OriginalCommandRequest])
def test_an_earlier_service_reads_a_signed_command(kind: Any) -> None:
    """The type is appendable: members behind those that it knows are left."""
    read = kind.deserialize(octets_of(signed()))
    assert (read.service_name, read.resource_identifier) == ("Billing", str(QUEUE))
    assert read.action is CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE


def test_another_key_is_denied_until_it_is_accepted(verifier: CommandVerifier) -> None:
    assert cause_of(verifier, signed(OTHER)) is DenialCause.UNKNOWN_KEY
    verifier.accept_keys([OTHER, KEY])
    assert cause_of(verifier, signed(OTHER)) is None
    assert cause_of(verifier, signed(KEY)) is None, "while the new key reaches the clients"
    verifier.accept_keys([OTHER])
    assert cause_of(verifier, signed(KEY)) is DenialCause.UNKNOWN_KEY


def test_what_was_accepted_stays_remembered_when_keys_change(verifier: CommandVerifier) -> None:
    made = signed()
    assert cause_of(verifier, made) is None
    verifier.accept_keys([OTHER, KEY])
    assert cause_of(verifier, made) is DenialCause.REPLAYED


CHANGES: dict[str, Callable[[Any], None]] = {
    "target": lambda each: setattr(each, "service_name", "Billin*"),
    "service": lambda each: setattr(each, "service", ServiceKind.RTI_SERVICE_OTHER_SERVICE),
    "action": lambda each: setattr(each, "action", CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE),
    "resource": lambda each: setattr(each, "resource_identifier", each.resource_identifier + "2"),
    "moved between members": lambda each: (
        setattr(each, "resource_identifier", each.resource_identifier[:-1]),
        setattr(each, "string_body", each.resource_identifier[-1:] + each.string_body),
    )[0],
    "body": lambda each: setattr(each, "string_body", "only_if_empty"),
    "octets": lambda each: setattr(each, "octet_body", b"1"),
    "identity": lambda each: setattr(each.request_identity.sequence_number, "low", 8),
    "time": lambda each: setattr(each, "signature", each.signature[:12] + b"\1" + each.signature[13:]),
    "random number": lambda each: setattr(each, "signature", each.signature[:13] + b"1" + each.signature[14:]),
    "digest": lambda each: setattr(each, "signature", each.signature[:-1] + bytes([each.signature[-1] ^ 1])),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_signature_covers_the_whole_command(verifier: CommandVerifier, change: Callable[[Any], None]) -> None:
    made = signed()
    change(made)
    assert cause_of(verifier, made) is DenialCause.WRONG_SIGNATURE
    assert cause_of(verifier, signed()) is None


def test_a_signature_for_another_run_is_denied_also_after_a_restart(verifier: CommandVerifier, clock: Clock) -> None:
    made = signed()
    assert cause_of(verifier, made) is None
    restarted = CommandVerifier([KEY], OTHER_RUN, clock)
    assert cause_of(restarted, made) is DenialCause.OTHER_RUN
    moved = signed()
    moved.signature = moved.signature.replace(RUN, OTHER_RUN)
    assert cause_of(restarted, moved) is DenialCause.WRONG_SIGNATURE


def test_a_command_for_several_services_is_signed_for_each(clock: Clock) -> None:
    made = request(target="*")
    made.signature = signature_of(made, KEY, [RUN, OTHER_RUN], now=NOW)
    for run in (RUN, OTHER_RUN):
        assert cause_of(CommandVerifier([KEY], run, clock), made) is None
    with pytest.raises(UsageError, match="for 257 services"):
        signature_of(made, KEY, (struct.pack(">Q", at) for at in range(257)))


@pytest.mark.parametrize("seconds", [-299, 0, 299])
def test_clocks_may_differ_by_five_minutes(verifier: CommandVerifier, seconds: int) -> None:
    assert cause_of(verifier, signed(at=NOW + seconds * SECOND_NS)) is None


@pytest.mark.parametrize(("seconds", "words"), [(-3_600, "3600s behind"), (301, "301s ahead of")])
def test_a_clock_that_differs_more_is_named(verifier: CommandVerifier, seconds: int, words: str) -> None:
    with pytest.raises(UnauthorizedCommand, match=words) as raised:
        verifier.check(received(signed(at=NOW + seconds * SECOND_NS)))
    assert raised.value.cause is DenialCause.CLOCK
    assert "300s" in raised.value.remedy


@pytest.mark.parametrize("ahead", [0, CLOCK_DIFFERENCE_MAX_NS])
def test_a_copy_is_denied_whenever_it_is_sent(verifier: CommandVerifier, clock: Clock, ahead: int) -> None:
    """Also where the client's clock is ahead, the service's is set back, and others were accepted since."""
    copied = signed(at=NOW + ahead)
    assert cause_of(verifier, copied) is None
    for step in (0, 1, 299, 300, 301, 600, 601, 900, 901, 100, 0):
        clock.now = NOW + step * SECOND_NS
        assert cause_of(verifier, copied) in (DenialCause.REPLAYED, DenialCause.CLOCK)
        cause_of(verifier, signed(at=clock.now))


def test_what_is_remembered_is_bounded_and_copies_stay_denied(
    verifier: CommandVerifier, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_commands, "REMEMBERED_MAX", 100)
    made = []
    for _ in range(1_000):
        clock.now += 1_000
        made.append(signed(at=clock.now))
        assert cause_of(verifier, made[-1]) is None
    assert len(verifier._remembered) == len(verifier._by_time) == 100
    assert {cause_of(verifier, each) for each in made} <= {DenialCause.REPLAYED, DenialCause.CLOCK}


def test_memory_is_given_back_when_times_no_longer_count(verifier: CommandVerifier, clock: Clock) -> None:
    for _ in range(50):
        assert cause_of(verifier, signed(at=clock.now)) is None
    clock.now += 2 * CLOCK_DIFFERENCE_MAX_NS
    assert cause_of(verifier, signed(at=clock.now)) is None
    assert len(verifier._remembered) == len(verifier._by_time) == 1


def test_a_denied_command_is_not_remembered(verifier: CommandVerifier) -> None:
    for _ in range(100):
        cause_of(verifier, signed(OTHER))
        cause_of(verifier, signed(run=OTHER_RUN))
    assert not verifier._remembered


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda rest: b"\1" + KEY.number + rest)))
def test_any_octets_are_denied_and_raise_nothing_else(octets: bytes) -> None:
    made = request()
    made.signature = octets
    assert cause_of(CommandVerifier([KEY], RUN, Clock()), made) is not None


@pytest.mark.parametrize("member", ["service", "action"])
def test_a_number_without_a_name_is_covered_as_any(verifier: CommandVerifier, member: str) -> None:
    """An enumeration is an unsigned number on the wire."""
    made = signed()
    setattr(made, member, 2**32 - 1)
    with pytest.raises(UnauthorizedCommand) as raised:
        verifier.check(made)
    assert raised.value.cause is DenialCause.WRONG_SIGNATURE


def test_many_entries_cost_no_more_than_those_that_are_read(verifier: CommandVerifier) -> None:
    made = request()
    head = signature_of(made, KEY, [RUN], now=NOW)[:29]
    made.signature = head + bytes(40) * 100_000
    assert cause_of(verifier, made) is DenialCause.OTHER_RUN


@pytest.mark.parametrize(
    ("text", "run"),
    [("", None), ("xyz", None), ("00", None), ("é" * 16, None), (RUN.hex(), RUN), (RUN.hex() * 9, None)],
)
def test_an_announced_run_is_read_or_left(text: str, run: bytes | None) -> None:
    assert run_of({"signed_commands": text}) == run
    assert run_of({}) is None


def test_another_program_can_sign_by_the_page(verifier: CommandVerifier) -> None:
    """`qsctl help dds-administration`, step by step, with the standard library alone."""
    number = hashlib.sha256(b"qsctl administration key number" + KEY.octets).digest()[:4]
    head = b"\1" + number + struct.pack(">Q", NOW) + b"16 random octets"
    covered = struct.pack(">ii", 2, 11) + b"0123456789abcdef" + struct.pack(">q", 7)
    for member in (b"Billing", str(QUEUE).encode(), b"", b""):
        covered += struct.pack(">Q", len(member)) + member
    digest = hmac.new(KEY.octets, b"qsctl administration command" + head + RUN + covered, hashlib.sha256).digest()
    made = request()
    made.signature = head + RUN + digest
    assert cause_of(verifier, made) is None


def test_nothing_of_a_key_is_in_messages(verifier: CommandVerifier) -> None:
    for made in (request(), signed(OTHER), signed(run=OTHER_RUN), signed(at=0)):
        with pytest.raises(UnauthorizedCommand) as raised:
            verifier.check(received(made))
        shown = f"{raised.value.message}{raised.value.remedy}{sys.exception()!r}"
        assert KEY.octets.hex() not in shown
        assert OTHER.octets.hex() not in shown
    assert verifier.key_numbers == (str(KEY),)
