"""Signatures of administration commands: made by a client, checked by a service that has a key (an extension).

Decides: which commands need one, what it covers, and when it is valid. Every command that changes something needs one;
a GET does not, for the programs that send and receive samples find their queues by it, and would all have to hold the
key.

A signature is HMAC-SHA256 (RFC 2104) over all members of the request, a time, a random number, and the run of the
service that it is for. A service draws a new number for its run at each start and announces it with its reader of
requests: a captured signature is of no use at another service, nor at the same one after a restart. Within a run a
service remembers the random numbers that it accepted for as long as their times are valid.

The signature is a member of the request behind those of the source, which is why it may be missing: the type is
appendable, a service without a key ignores it, and peers that do not know it are read as before. It is one sequence of
octets, so that any program can make it: a head, then one entry for each service that is meant.
"""

from __future__ import annotations

import hmac
import secrets
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from typing import Any, Final

from qsctl.config.signing_keys import SigningKey
from qsctl.errors import Refused, UsageError
from qsctl.instant import SECOND_NS, Nanoseconds, format_duration
from qsctl.transport.dds.wire.bodies import identity_from_wire
from qsctl.transport.dds.wire.wire_types import CommandActionKind

CLOCK_DIFFERENCE_MAX_NS: Final[Nanoseconds] = 300 * SECOND_NS
"""Largest difference between the clocks of client and service, including the command's transfer time."""

REMEMBERED_MAX: Final = 50_000
"""Commands whose random numbers a service remembers; with more of them their times count for less long."""

SERVICES_MAX: Final = 256
"""Services that one command is signed for."""

RUN_BYTES: Final = 8
RUN_TRAIT: Final = "signed_commands"
"""The trait of a reader of requests that requires signatures: the run of its service, in hexadecimal digits."""

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">B4sQ16s")
"""Version, number of the key, time in nanoseconds since 1970, random number."""

_ENTRY: Final = struct.Struct(f">{RUN_BYTES}s32s")
"""The run of a service, and the HMAC for it."""

_MEMBERS: Final = struct.Struct(">II16sq")
_LENGTH: Final = struct.Struct(">Q")
_CONTEXT: Final = b"qsctl administration command"
_NO_SIGNATURE_REMEDY: Final = (
    "Name the file of the key with --key-file, or in the context: qsctl context add … --key-file FILE."
)


class DenialCause(StrEnum):
    """Why a service with a key did not carry out a command."""

    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown_key"
    WRONG_SIGNATURE = "wrong_signature"
    OTHER_RUN = "other_run"
    CLOCK = "clock"
    REPLAYED = "replayed"


class UnauthorizedCommand(Refused):
    """An error for a command without a valid signature."""

    def __init__(self, cause: DenialCause, message: str, *, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.cause = cause


def needs_signature(action: CommandActionKind | int) -> bool:
    """Return whether a command changes something: all do but GET."""
    return action != CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET


def signature_of(request: Any, key: SigningKey, runs: Iterable[bytes], *, now: Nanoseconds | None = None) -> bytes:
    """Return the signature of a request.

    Args:
        request: its wire form; the member `signature` is not covered.
        key: signs it.
        runs: of the services that it is for.
        now: the time in the signature; the clock's unless given.

    Raises:
        UsageError: it is for more services than one signature can be.
    """
    meant = sorted(set(runs))
    if len(meant) > SERVICES_MAX:
        raise UsageError(
            f"the command is for {len(meant)} services, and is signed for at most {SERVICES_MAX}",
            remedy="Name fewer of them with --target.",
        )
    head = _HEAD.pack(_VERSION, key.number, time.time_ns() if now is None else now, secrets.token_bytes(16))
    covered = _covered(request)
    return head + b"".join(_ENTRY.pack(run, _mac(key, run, head, covered)) for run in meant)


class CommandVerifier:
    """Checks the signatures of commands for one run of a service.

    Args:
        keys: each of them is accepted.
        run: the number that the service drew for this run.
        clock: the time of day.
    """

    def __init__(self, keys: Sequence[SigningKey], run: bytes, clock: Callable[[], Nanoseconds] = time.time_ns) -> None:
        self._keys = {each.number: each for each in keys}
        self.run = run
        self._clock = clock
        self._remembered: set[bytes] = set()
        self._by_time: list[tuple[Nanoseconds, bytes]] = []
        self._forgotten_until_ns: Nanoseconds = 0
        """The latest time of a command that is not remembered any more: earlier ones are refused."""

    @property
    def key_numbers(self) -> tuple[str, ...]:
        """The numbers of the keys, for the log."""
        return tuple(map(str, self._keys.values()))

    def accept_keys(self, keys: Sequence[SigningKey]) -> None:
        """Accept these keys from now on."""
        self._keys = {each.number: each for each in keys}

    def check(self, request: Any) -> None:
        """Return if a request may be carried out, and remember its random number.

        Raises:
            UnauthorizedCommand: it may not.
        """
        if not needs_signature(request.action):
            return
        signature = bytes(getattr(request, "signature", b""))
        if not signature:
            raise UnauthorizedCommand(
                DenialCause.UNSIGNED,
                "this service carries out signed commands only, and this one is not signed",
                remedy=_NO_SIGNATURE_REMEDY,
            )
        if len(signature) < _HEAD.size or (len(signature) - _HEAD.size) % _ENTRY.size or signature[0] != _VERSION:
            raise UnauthorizedCommand(
                DenialCause.WRONG_SIGNATURE,
                f"the signature of {len(signature)} octets is not laid out as one of version {_VERSION}",
                remedy="Use a client of this service's version; `qsctl help dds-administration` has the layout.",
            )
        _, number, signed_at, nonce = _HEAD.unpack_from(signature)
        key = self._keys.get(number)
        if key is None:
            raise UnauthorizedCommand(
                DenialCause.UNKNOWN_KEY,
                f"the key {number.hex()}, which signed the command, is not a key of this service",
                remedy="Copy the service's key file to the client; `qsctl key list FILE` shows its keys' numbers.",
            )
        entries = dict(_ENTRY.iter_unpack(signature[_HEAD.size : _HEAD.size + SERVICES_MAX * _ENTRY.size]))
        mac = entries.get(self.run)
        if mac is None:
            raise UnauthorizedCommand(
                DenialCause.OTHER_RUN,
                "the command is signed for another run: the service has just started, or the command is a copy",
                remedy="Send the command again.",
            )
        if not hmac.compare_digest(mac, _mac(key, self.run, signature[: _HEAD.size], _covered(request))):
            raise UnauthorizedCommand(
                DenialCause.WRONG_SIGNATURE,
                "the signature is not that of this command",
                remedy="The command was changed on its way, or its program signs something else.",
            )
        self._check_time(signed_at)
        if nonce in self._remembered:
            raise UnauthorizedCommand(
                DenialCause.REPLAYED,
                "the command was carried out before: this is a copy of it",
                remedy="Sign a command anew for each time that it is sent.",
            )
        self._remember(signed_at, nonce)

    def _check_time(self, signed_at: Nanoseconds) -> None:
        now = self._clock()
        if abs(signed_at - now) > CLOCK_DIFFERENCE_MAX_NS:
            difference = format_duration(abs(signed_at - now) // SECOND_NS * SECOND_NS)
            direction = "behind" if signed_at < now else "ahead of"
            raise UnauthorizedCommand(
                DenialCause.CLOCK,
                f"the command's time is {difference} {direction} the clock of this service",
                remedy=f"At most {format_duration(CLOCK_DIFFERENCE_MAX_NS)} are allowed. Set both machines' clocks.",
            )
        if signed_at <= self._forgotten_until_ns:
            raise UnauthorizedCommand(
                DenialCause.CLOCK,
                "the command's time is before that of commands which this service does not remember any more",
                remedy="A clock is behind or was set back: set both, and start the service again if it was its own.",
            )

    def _remember(self, signed_at: Nanoseconds, nonce: bytes) -> None:
        self._remembered.add(nonce)
        heappush(self._by_time, (signed_at, nonce))
        expired = self._clock() - CLOCK_DIFFERENCE_MAX_NS
        while self._by_time[0][0] < expired or len(self._by_time) > REMEMBERED_MAX:
            self._forgotten_until_ns, forgotten = heappop(self._by_time)
            self._remembered.discard(forgotten)


def run_of(traits: Any) -> bytes | None:
    """Return the run that a reader of requests announces; None where it requires no signatures, or is wrong."""
    try:
        run = bytes.fromhex(traits.get(RUN_TRAIT, ""))
    except ValueError:
        return None
    return run if len(run) == RUN_BYTES else None


def _mac(key: SigningKey, run: bytes, head: bytes, covered: bytes) -> bytes:
    return hmac.digest(key.octets, b"".join((_CONTEXT, head, run, covered)), "sha256")


def _covered(request: Any) -> bytes:
    """Return the octets of a request that a signature covers: equal for equal requests only."""
    identity = identity_from_wire(request.request_identity)
    parts = (
        request.service_name.encode("utf-8", "surrogatepass"),
        request.resource_identifier.encode("utf-8", "surrogatepass"),
        request.string_body.encode("utf-8", "surrogatepass"),
        bytes(request.octet_body),
    )
    members = _MEMBERS.pack(
        _number(request.service), _number(request.action), identity.writer_guid, identity.sequence_number
    )
    return members + b"".join(_LENGTH.pack(len(each)) + each for each in parts)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(value.value)
