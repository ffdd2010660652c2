"""A service that lives in a directory and runs inside each command.

Decides: whether a command needs the restored service. Each command locks the directory, restores the engine from its
stores (`embedded_instance`), runs, and unlocks. One that can be answered from the last command's summary (`at_rest`)
restores nothing, since that takes longer, the more samples are held. A killed command loses nothing that was answered,
because that was stored first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.core.admin.command import Command
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    ConsumerJoined,
    Delivery,
    QueueName,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.settings import ServiceSettings
from qsctl.errors import Refused
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.directory._at_rest import AtRest, find_at_rest, write_index
from qsctl.service.directory.state_directory import Instance, StateDirectory, locked

if TYPE_CHECKING:
    from qsctl.core.hosted_service import HostedService
    from qsctl.service.directory._embedded_instance import EmbeddedInstance
    from qsctl.service.run.named_configuration import Configuration, NamedConfiguration
    from qsctl.storage.damage import DamageReport

DEFAULT_WAIT_S: Final = 10.0
SAMPLES_PER_TURN: Final = 5_000
"""Number of written samples that are stored together; the synchronization of the disk is paid once for them."""

_POLL_S: Final = 0.05


@contextmanager
def open_embedded(
    state_dir: Path,
    *,
    configuration: Configuration | NamedConfiguration | None = None,
    wait_s: float = DEFAULT_WAIT_S,
    now: Callable[[], Nanoseconds] = time.time_ns,
    discard_damaged: bool = False,
) -> Iterator[EmbeddedService]:
    """Open the service in a state directory, for one command.

    Args:
        state_dir: created at first use, accessible to its owner only.
        configuration: for a new instance. An existing one keeps its own [QS 2.14.1]: a named configuration that
            differs is refused, or reported in `warnings`.
        wait_s: how long to wait for another command that uses the directory.
        now: the wall clock in Unix nanoseconds.
        discard_damaged: whether to continue with the intact records after a loss; `damage` lists the losses.

    Raises:
        NoAnswer: another process used the directory until the wait was over; the message names it and its start.
        InvalidInput: the directory cannot be used.
        Damaged: stored records are lost, and the user has not accepted that: no file was changed.
        Refused: a later version wrote the state, the configuration is not valid, or the existing instance began with
            another than the named one.
    """
    service = EmbeddedService(state_dir, configuration, wait_s, now, discard_damaged=discard_damaged)
    service.open()
    with closing(service):
        yield service


class EmbeddedService:
    """A service that runs within one command, with the interface `client.connection.Connection`.

    After SHUTDOWN [QS 5.4.9] it accepts no more requests, and the next command starts a fresh instance: counters
    begin at zero, the samples of volatile queues are deleted, and so are queues created at run time, unless the service
    state is PERSISTENT. Samples of persistent queues stay.

    Use `open_embedded`.
    """

    def __init__(
        self,
        state_dir: Path,
        configuration: Configuration | NamedConfiguration | None,
        wait_s: float,
        now: Callable[[], Nanoseconds],
        *,
        discard_damaged: bool,
    ) -> None:
        self._discards_damaged = discard_damaged
        self._directory = StateDirectory(state_dir)
        self._configuration = configuration
        self._wait_s = wait_s
        self._now = now
        self._guid = Guid(os.urandom(16))
        self._request_count = 0
        self._reported_damage: list[DamageReport] = []
        self._reported_warnings: list[str] = []
        self.warnings: list[str] = []
        """Warnings about the service's configuration for the user."""
        self._at_rest: AtRest | None = None
        self._restored: EmbeddedInstance | None = None
        """One of them while it is open: most commands need the second, which is made once they do."""
        self._held = ExitStack()

    @property
    def application_name(self) -> str:
        """The name that a command's target pattern is matched against."""
        return self._hosted.application_name

    @property
    def settings(self) -> ServiceSettings:
        """The current configuration."""
        return self._hosted.settings()

    @property
    def _hosted(self) -> HostedService:
        return self._at_rest.hosted if self._at_rest is not None else self._instance.loop.engine.hosted

    @property
    def damage(self) -> list[DamageReport]:
        """The damage that was found; all intact records were restored."""
        return [*self._reported_damage, *(self._restored.damage if self._restored is not None else ())]

    @property
    def warnings_of_failures(self) -> list[str]:
        """The reasons why a recording was ended, or samples were refused, by a failure in this command."""
        restored = self._restored
        found = [] if restored is None else [*restored.recording.warnings, *restored.storage_warnings]
        return list(dict.fromkeys([*self._reported_warnings, *found]))

    def forget_configuration(self) -> None:
        """Let SHUTDOWN delete the stored configuration even if it is PERSISTENT [QS 2.14.1]."""
        self._instance.forgets_configuration = True

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Execute a command and return its replies; none where the target pattern does not match this service [QS
        5.2].
        """
        self._request_count += 1
        identity = SampleIdentity(self._guid, self._request_count)
        if self._at_rest is not None:
            replies = self._at_rest.answers(self._now(), identity, command, target)
            if replies is not None:
                return replies
        return self._instance.request(identity, command, target)

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples to every queue of their topic; acknowledged samples are stored as configured.

        A sample that a full queue does not accept gets no acknowledgment, and is dropped when the command ends: its
        producer still has it [QS 2.15.4].
        """
        answers: list[WriteAcknowledgment] = []
        for start in range(0, len(samples), SAMPLES_PER_TURN):
            messages = self._instance.turn(samples[start : start + SAMPLES_PER_TURN])
            answers += [message for message in messages if isinstance(message, WriteAcknowledgment)]
        return answers

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Receive at most `max_samples` samples of a queue as a consumer, waiting a bounded time for the first.

        While it waits, other commands may use the directory. A sample that was received and not acknowledged when the
        command ends returns to the queue with the redelivered flag.
        """
        if max_samples <= 0:
            return []
        deadline = time.monotonic() + timeout_s
        while True:
            found = self._take(queue, max_samples, source_guid)
            if found or self._instance.outstanding_count(queue):
                return found
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self._wait_for_others(left_s):
                return found

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: true retires it, false rejects it [QS 2.5]."""
        self.acknowledge_all([delivery], ok)

    def acknowledge_all(self, deliveries: Sequence[Delivery], ok: bool) -> None:
        """Acknowledge many samples in one transaction."""
        response = AckResponse.ACCEPTED if ok else AckResponse.REJECTED
        self._instance.turn(
            [Acknowledgment(each.queue, each.consumer_guid, each.identity, response) for each in deliveries]
        )

    def open(self) -> None:
        """Lock the directory; use the last command's summary, or restore the service."""
        with ExitStack() as held:
            held.enter_context(locked(self._directory, self._wait_s, self._now))
            self._at_rest = self._found_at_rest()
            if self._at_rest is None:
                self._restore()
            else:
                self.warnings = list(self._at_rest.warnings)
            self._held = held.pop_all()

    def close(self) -> None:
        """Write the state for the next command, and unlock the directory."""
        restored, self._restored = self._restored, None
        at_rest, self._at_rest = self._at_rest, None
        try:
            if restored is not None:
                refusals = restored.storage_warnings
                try:
                    index = restored.close()
                finally:
                    self._reported_damage += restored.damage
                    self._reported_warnings += [*restored.recording.warnings, *refusals]
                if index is not None:
                    write_index(self._directory, restored.instance, index)
            elif at_rest is not None:
                at_rest.close()
        finally:
            self._held.close()

    def _found_at_rest(self) -> AtRest | None:
        """Return the service from the last command's summary; None where it must be restored."""
        found = None if self._discards_damaged else find_at_rest(self._directory, self._now())
        if found is None or not self._may_differ_from(found.instance):
            return found
        self._directory.forget_index()
        return None

    def _may_differ_from(self, instance: Instance) -> bool:
        """Return whether the named configuration has other sources than the instance's, so that they must be
        compared.
        """
        if self._configuration is None:
            return False
        from qsctl.service.run.named_configuration import NamedConfiguration

        named = self._configuration
        return isinstance(named, NamedConfiguration) and not named.sources_digest == instance.sources_digest != ""

    @property
    def _instance(self) -> EmbeddedInstance:
        """The restored instance.

        Raises:
            Refused: an earlier call failed to restore it, or it was closed.
        """
        if self._restored is not None:
            return self._restored
        if self._at_rest is None:
            raise Refused("the service stopped at an earlier error", remedy="Run the command again.")
        return self._restore()

    def _restore(self) -> EmbeddedInstance:
        from qsctl.service.directory._embedded_instance import EmbeddedInstance

        if self._at_rest is not None:
            at_rest, self._at_rest = self._at_rest, None
            at_rest.close()
            self._directory.forget_index()  # from here on something may change

        def opened() -> EmbeddedInstance:
            instance = EmbeddedInstance(
                self._directory,
                self._configuration,
                self._wait_s,
                self._now,
                self._guid,
                discards_damaged=self._discards_damaged,
            )
            instance.open()
            return instance

        restored = opened()
        if self._directory.is_stopping:
            restored.end()
            self._reported_damage += restored.damage
            self._directory.create()
            restored = opened()
        self.warnings = restored.warnings
        self._restored = restored
        return restored

    def _take(self, queue: QueueName, max_samples: int, source_guid: Guid) -> list[Delivery]:
        """Receive with a consumer window of `max_samples`, which is closed before anything else is done."""
        instance = self._instance
        instance.catch_up()  # samples whose response time-out has passed are not held any more
        threshold = max_samples + instance.outstanding_count(queue) - 1
        instance.turn(
            [
                ConsumerJoined(queue, self._guid, source_guid, unacked_threshold=threshold, reception_enabled=True),
                ConsumerJoined(queue, self._guid, source_guid, reception_enabled=False),
            ]
        )
        taken, instance.deliveries = instance.deliveries, []
        return taken

    def _wait_for_others(self, left_s: float) -> bool:
        """Unlock the directory until a command has changed something or a deadline passes; return False at the time
        limit.

        Called only while this command holds no sample.
        """
        instance = self._instance
        deadline = instance.loop.engine.next_deadline()
        if deadline is not None:
            left_s = min(left_s, max(0.0, (deadline - self._now()) / SECOND_NS))
        until = time.monotonic() + left_s
        self.close()
        folder = Path(instance.instance.directory)
        before = self._directory.fingerprint(folder)
        while (is_same := self._directory.fingerprint(folder) == before) and time.monotonic() < until:
            time.sleep(min(_POLL_S, max(0.0, until - time.monotonic())))
        self.open()
        return not is_same or deadline is not None
