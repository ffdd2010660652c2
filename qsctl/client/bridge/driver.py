"""The driver of a bridge: it carries out the effects of `steps` at two services.

Decides: the pauses, which errors are waited out, and what is reported. A state is reported when it begins, not with
each attempt. While a target is full or a service is away, nothing is read ahead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from qsctl.client.administration import Administration
from qsctl.client.bridge._place import MirrorPlace, place_from_octets, place_identity, place_octets, place_writer
from qsctl.client.bridge.steps import (
    AnotherMirror,
    BridgeRest,
    BridgeSteps,
    Effect,
    FlagSource,
    InsertTarget,
    ReadPlaces,
    ReadSource,
    RemovePlace,
    RemoveSource,
    Steps,
    WritePlace,
)
from qsctl.client.transfer import held_sample
from qsctl.core.admin.reply import MessageData, MessageStatus
from qsctl.core.inserted_sample import InsertedSample
from qsctl.errors import NoAnswer, NotFound, QsctlError, Refused
from qsctl.resource import ResourceIdentifier

SHORTEST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
"""Longest pause before an empty source is read again."""
LONGEST_RETRY_S: Final = 5.0
"""Longest pause before a target that is full, or a service that is away, is tried again."""
AGAIN_S: Final = 30.0
"""Time after which the samples that a shovel left behind are tried again."""


class BridgeState(StrEnum):
    """The states of a bridge."""

    RUNNING = "running"
    """Samples cross, or the source has none that do."""
    BLOCKED = "blocked"
    """The target accepts nothing: it is full, or its service suspends it."""
    AWAY = "away"
    """A service does not answer, refuses, or does not host its queue."""
    ENDED = "ended"


class BridgeEnds(NamedTuple):
    """The administration of both services while they are open."""

    source: Administration
    target: Administration


@dataclass
class BridgeDriver:
    """A bridge between two queues. Call `run`; `stop` ends it from a signal handler or another thread.

    Args:
        open_ends: opens both services.
        source, target: the queues.
        selector: selects the samples to read.
        bridge: the options and counts.
        make_steps: returns a state machine that was not started.
        places: the queue of places of a mirror; None: it is a shovel.
        mirror: the name of the mirror.
        ends_at_rest: whether to end where nothing more can cross now, and to raise errors instead of waiting.
        closes_at_rest: whether to close the services during a pause, for other commands to open them.
        on_state: called when another state begins.
        on_progress: called after each batch, and before each pause.
    """

    open_ends: Callable[[], AbstractContextManager[BridgeEnds]]
    source: ResourceIdentifier
    target: ResourceIdentifier
    selector: str
    bridge: BridgeSteps
    make_steps: Callable[[], Steps]
    places: ResourceIdentifier | None = None
    mirror: str = ""
    ends_at_rest: bool = False
    closes_at_rest: bool = False
    on_state: Callable[[BridgeState, str], object] = lambda _state, _text: None
    on_progress: Callable[[], object] = lambda: None
    state: BridgeState = BridgeState.RUNNING
    obstacle: str = ""
    """Why the target accepts nothing; empty: it does, as far as is known."""
    last_error: str = ""
    """The latest error or obstacle."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _steps: Steps | None = None
    _effect: Effect | None = None
    _pause_s: float = SHORTEST_PAUSE_S
    _began_again_at_s: float = field(default_factory=time.monotonic)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing in the source waits to cross, as far as is known."""
        return isinstance(self._effect, BridgeRest) and not self.obstacle

    def stop(self) -> None:
        """End before the next batch."""
        self.bridge.is_ending = True
        self._stopping.set()

    def run(self) -> None:
        """Carry samples over until `stop`, the limit, or, with `ends_at_rest`, until nothing more can cross.

        Raises:
            AnotherMirror: another mirror of the name is at work.
            QsctlError: with `ends_at_rest`, any error of a service; otherwise errors that do not pass by themselves.
        """
        is_over = False
        while not is_over:
            try:
                with self.open_ends() as ends:
                    is_over = self._cross(ends)
            except (NoAnswer, NotFound, Refused) as error:
                self._steps = self._effect = None
                if self.ends_at_rest or isinstance(error, AnotherMirror):
                    raise
                if self._stopping.is_set():
                    break
                self._enter(BridgeState.AWAY, error.message)
                self._pause(LONGEST_RETRY_S)
            else:
                if not is_over:
                    self._pause(LONGEST_RETRY_S if self.obstacle else LONGEST_PAUSE_S)
        self._enter(BridgeState.ENDED, "")

    def _cross(self, ends: BridgeEnds) -> bool:
        """Carry out effects; return True at the end, and False at a rest for which the services are closed."""
        if self._steps is None:
            self._steps = self.make_steps()
            self._effect = next(self._steps, None)
        elif isinstance(self._effect, BridgeRest):
            self._send(self._begins_again())
        while self._effect is not None:
            if isinstance(self._effect, BridgeRest):
                self._rest(self._effect)
                if self.ends_at_rest or self._stopping.is_set():
                    break
                if self.closes_at_rest:
                    return False
                self._pause(LONGEST_RETRY_S if self.obstacle else LONGEST_PAUSE_S)
                self._send(self._begins_again())
                continue
            moved_count = self.bridge.counts.moved_count
            self._step(ends, self._effect)
            if self.bridge.counts.moved_count > moved_count:
                self._pause_s = SHORTEST_PAUSE_S
                self.obstacle = ""
                self._enter(BridgeState.RUNNING, "")
        return True

    def _step(self, ends: BridgeEnds, effect: Effect) -> None:
        assert self._steps is not None
        try:
            answer = self._carry_out(ends, effect)
        except QsctlError as error:
            self._effect = self._steps.throw(error)
            return
        self._send(answer)
        if isinstance(effect, InsertTarget):
            self.on_progress()

    def _send(self, answer: object) -> None:
        assert self._steps is not None
        try:
            self._effect = self._steps.send(answer)
        except StopIteration:
            self._effect = None

    def _rest(self, rest: BridgeRest) -> None:
        self.obstacle = rest.obstacle
        self._enter(BridgeState.BLOCKED if rest.obstacle else BridgeState.RUNNING, rest.obstacle)
        self.on_progress()

    def _begins_again(self) -> bool:
        now = time.monotonic()
        begins = now >= self._began_again_at_s + AGAIN_S
        if begins:
            self._began_again_at_s = now
        return begins

    def _pause(self, longest_s: float) -> None:
        self._stopping.wait(min(self._pause_s, longest_s))
        self._pause_s = min(2 * self._pause_s, LONGEST_RETRY_S)

    def _enter(self, state: BridgeState, text: str) -> None:
        self.last_error = text or self.last_error
        if state is not self.state:
            self.state = state
            self.on_state(state, text)
            self.on_progress()

    def _carry_out(self, ends: BridgeEnds, effect: Effect) -> Any:
        match effect:
            case ReadSource():
                return self._read(ends.source, effect)
            case FlagSource(samples):
                return ends.source.flag_samples(self.source, [held_sample(each) for each in samples])
            case InsertTarget(inserted):
                return ends.target.insert_samples(self.target, inserted)
            case RemoveSource(samples):
                return ends.source.remove_samples(self.source, [held_sample(each) for each in samples])
            case ReadPlaces():
                return {
                    each.identity.sequence_number: place_from_octets(each.payload or b"")
                    for each in self._held_places(ends.target)
                }
            case WritePlace(number, place):
                return self._write_place(ends.target, number, place)
            case RemovePlace(number):
                return self._remove_place(ends.target, number)
            case BridgeRest():
                raise AssertionError("a pause is no effect on a service")

    def _read(self, source: Administration, read: ReadSource) -> list[MessageData]:
        replies = source.messages(self.source, self.selector, read.count, read.after_position, read.incarnation)
        found = {each.body.position: each.body for each in replies}  # of several replicas
        return [found[position] for position in sorted(found)[: read.count]]

    def _held_places(self, target: Administration, number: int | None = None) -> list[MessageData]:
        assert self.places is not None
        selector = f"@original_sample_identity.writer_guid.value = &hex({place_writer(self.mirror).hex()})"
        found = [each.body for each in target.messages(self.places, selector)]
        if any(each.status is not MessageStatus.UNDELIVERED for each in found):
            raise Refused(
                f"a consumer reads the queue of places {self.places}", remedy="Name a queue without consumers."
            )
        wanted = [each for each in found if number in (None, each.identity.sequence_number)]
        return list({each.position: each for each in wanted}.values())

    def _write_place(self, target: Administration, number: int, place: MirrorPlace) -> Any:
        assert self.places is not None
        sample = InsertedSample(place_identity(self.mirror, number), place_octets(place), redelivered=False)
        return target.insert_samples(self.places, [sample])

    def _remove_place(self, target: Administration, number: int) -> bool:
        assert self.places is not None
        held = self._held_places(target, number)
        return bool(held) and target.remove_samples(self.places, [held_sample(each) for each in held]).done_count > 0
