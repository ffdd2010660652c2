"""The declared procedures and translations of a scenario, as functions of the message alone [CLOVERLEAF].

Decides the label of a simulated message: its data begins with a line `thread number path`: its sender, its number, and
the path of results that led to it. Functions of the label return the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from qsctl.core.integration.dispositions import Disposition, ProcedureContext
from qsctl.core.integration.message import Message
from qsctl.core.integration.procedures import ProcedureFailed, ProcedureMode, ProcedureOutput
from qsctl.core.integration.routes import ErrorControl, Step, TranslationProduced, XpmError
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.kernel.random import logarithm, stream_key, uniform
from qsctl.sim.scenario.parts.engine import Behaviour, EngineProcedure, EngineTranslation, Spread

_ROOT: Final = "m"


class MessageLabel(NamedTuple):
    """The label of a simulated message."""

    thread: str
    number: int
    """The number among its sender's messages, from 1."""
    path: str
    """`m`, followed by one step for each result or change: `m.0.2`."""

    def line(self) -> bytes:
        """Return the label as the first line of the message's data."""
        return f"{self.thread} {self.number} {self.path}".encode()


def new_payload(thread: str, number: int, size_bytes: int) -> bytes:
    """Return the data of a sender's message: its label, padded to the size."""
    return MessageLabel(thread, number, _ROOT).line().ljust(max(0, size_bytes - 1)) + b"\n"


@lru_cache(maxsize=1 << 14)
def label_of(payload: bytes) -> MessageLabel:
    """Return the label of a message."""
    thread, number, path = payload.partition(b"\n")[0].decode().split()
    return MessageLabel(thread, int(number), path)


def with_step(payload: bytes, step: object) -> bytes:
    """Return the data with one more step on its path, padded to the previous size where the label is shorter."""
    label = label_of(payload)
    line = label._replace(path=f"{label.path}.{step}").line()
    return line.ljust(max(0, len(payload) - 1)) + b"\n"


@dataclass(frozen=True, slots=True)
class Durations:
    """The durations of a step, a function of the message: the same in every run."""

    takes_ns: Nanoseconds
    spread: Spread
    seed: int
    replication: int
    name: str

    def of(self, message: Message, step: int = 0) -> Nanoseconds:
        """Return the duration for a message; exponential durations have the configured mean."""
        if self.takes_ns == 0 or self.spread is Spread.CONSTANT:
            return self.takes_ns
        label = label_of(message.payload)
        key = np.uint64(stream_key(self.seed, self.replication, self.name, label.thread, label.path, step))
        return max(1, round(-float(logarithm(uniform(key, label.number))) * self.takes_ns))


_DISPOSITIONS: Final = {
    Behaviour.DROP: Disposition.KILL,
    Behaviour.SEND: Disposition.SEND,
    Behaviour.OVER: Disposition.OVER,
    Behaviour.PROTO: Disposition.PROTO,
    Behaviour.ERROR: Disposition.ERROR,
    Behaviour.KILLREPLY: Disposition.KILLREPLY,
    Behaviour.REROUTE: Disposition.REROUTE,
}


@dataclass(frozen=True, slots=True)
class DeclaredProcedure:
    """A procedure whose duration and results are drawn."""

    name: str
    declared: EngineProcedure
    durations: Durations

    def run(self, mode: ProcedureMode, context: ProcedureContext, message: Message | None) -> Sequence[ProcedureOutput]:
        """Run the declared procedure on a message it applies to; return its outputs."""
        del context
        if mode is not ProcedureMode.RUN or message is None:
            return ()
        declared, recoverable = self.declared, self.declared.recoverable
        carry_on = ProcedureOutput(Disposition.CONTINUE, is_recoverable=recoverable)
        if not self._applies(message):
            return (carry_on,)
        match declared.does:
            case Behaviour.PASS | Behaviour.LOOP:
                return (carry_on,)
            case Behaviour.CHANGE:
                return (carry_on._replace(payload=with_step(message.payload, declared.text or "c")),)
            case Behaviour.SPLIT:
                return [carry_on._replace(payload=with_step(message.payload, each)) for each in range(declared.results)]
            case Behaviour.FAIL:
                raise ProcedureFailed(declared.text or f"{self.name} failed")
            case Behaviour.RETRY:
                return (ProcedureOutput(Disposition.RETRY) if message.attempts < declared.times else carry_on,)
            case _:
                rerouted = declared.does is Behaviour.REROUTE
                return (
                    ProcedureOutput(
                        _DISPOSITIONS[declared.does],
                        payload=with_step(message.payload, declared.transaction) if rerouted else None,
                        destination=declared.to,
                        transaction_id=declared.transaction,
                        is_recoverable=recoverable,
                        text=declared.text,
                    ),
                )

    def takes_ns(self, message: Message) -> Nanoseconds:
        """Return the declared duration; infinite for a procedure that loops."""
        if self.declared.does is Behaviour.LOOP and self._applies(message):
            return INFINITE_NS
        return self.durations.of(message)

    def _applies(self, message: Message) -> bool:
        return label_of(message.payload).number % self.declared.every == 0


@dataclass(frozen=True, slots=True)
class DeclaredTranslation:
    """A translation whose duration and results are drawn."""

    name: str
    declared: EngineTranslation
    durations: Durations

    @property
    def error_control(self) -> ErrorControl:
        """As declared."""
        return self.declared.on_error

    def run(self, message: Message) -> Iterator[Step]:
        """Yield the declared number of results, and the declared error at its step."""
        declared = self.declared
        fails = declared.error_every > 0 and label_of(message.payload).number % declared.error_every == 0
        for number in range(declared.results + fails):
            takes_ns = self.durations.of(message, number)
            if fails and number == min(declared.error_after, declared.results):
                yield XpmError(declared.severity, f"message {label_of(message.payload).number}", takes_ns)
            else:
                made = number - (fails and number > declared.error_after)
                yield TranslationProduced(with_step(message.payload, made), takes_ns)
