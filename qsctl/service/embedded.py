"""A service that lives in a directory and runs inside each command.

Decides: what happens around the engine's turns when there is no process between commands. Each command locks the
directory, restores the engine from its stores, runs, and leaves. A command that is killed has lost nothing that was
answered: it is stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from qsctl.config.budgets import ServiceLimits
from qsctl.config.filesystem import Synchronization
from qsctl.config.live import live_text, read_live_text
from qsctl.config.rules.replication import refuse_replication, unserved
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import Command, GetConfiguration, RecordingCommand
from qsctl.core.admin.reply import Reply
from qsctl.core.admin.target import matches
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    Delivery,
    Inbound,
    Outbound,
    QueueName,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.records import ServiceStarted
from qsctl.core.settings import ServiceSettings
from qsctl.errors import Damaged, QsctlError, Refused
from qsctl.eventlog.run_folder import RecordingEnd
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.service.embedded_settings import DEFAULT_SETTINGS, configuration_reply, settings_of
from qsctl.service.incarnations import drawn_incarnation
from qsctl.service.loop import ServiceLoop
from qsctl.service.named_configuration import Configuration, NamedConfiguration, settings_digest
from qsctl.service.places import Place
from qsctl.service.recording.embedded import EmbeddedRecording
from qsctl.service.restore import restore
from qsctl.service.state_directory import FORMAT_VERSION, StateDirectory, locked, new_instance
from qsctl.service.stores import Stores
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.room import DiskFailed, DiskFull

DEFAULT_WAIT_S: Final = 10.0
SAMPLES_PER_TURN: Final = 5_000
"""So many written samples are stored together; the synchronization of the disk is paid once for them."""

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
    """The service in a state directory, for one command.

    Args:
        state_dir: made on first use, for its owner alone.
        configuration: what a new instance starts with. One that lives there keeps its own [QS 2.14.1]: a named
            configuration that is another is refused, or reported in `warnings`.
        wait_s: how long to wait for another command that uses the directory.
        now: the wall clock in Unix nanoseconds.
        discard_damaged: go on with what is whole where something stored is lost; `damage` lists it.

    Raises:
        NoAnswer: another process used the directory all the time; says which one and since when.
        InvalidInput: the directory cannot be used.
        Damaged: something stored is lost, and is not to be discarded: nothing was changed.
        Refused: a later version wrote the state, the configuration cannot stand, or the instance that lives there
            began with another than the one that is named.
    """
    service = EmbeddedService(state_dir, configuration, wait_s, now, discard_damaged=discard_damaged)
    service.open()
    with closing(service):
        yield service


class EmbeddedService:
    """A service for as long as one command takes; meets `client.connection.Connection`.

    After SHUTDOWN [QS 5.4.9] it takes no more requests, and the next command starts a fresh instance: counters
    begin at zero, the samples of volatile queues are gone, and so are queues created at run time, unless the service
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
        self._outstanding: dict[QueueName, set[SampleIdentity]] = {}
        self._waiting_deliveries: list[Delivery] = []
        self._reported_damage: list[DamageReport] = []
        self.warnings: list[str] = []
        """What the user should know of the service's configuration."""
        self._forgets_configuration = False
        self._is_sound = False
        self._held = ExitStack()

    @property
    def application_name(self) -> str:
        """What a command's target pattern is matched against."""
        return self._loop.engine.hosted.application_name

    @property
    def settings(self) -> ServiceSettings:
        """The configuration as it is now."""
        return self._loop.engine.hosted.settings()

    @property
    def damage(self) -> list[DamageReport]:
        """What was found broken; everything that is whole was restored."""
        return [*self._reported_damage, *self._stores.damage]

    @property
    def recording_warnings(self) -> list[str]:
        """Why a recording ended by itself, in this command."""
        return self._recording.warnings

    def forget_configuration(self) -> None:
        """Let a SHUTDOWN delete the stored configuration even where it is PERSISTENT [QS 2.14.1]."""
        self._forgets_configuration = True

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Have a command answered; no reply when the target pattern means another service [QS 5.2]."""
        self._request_count += 1
        identity = SampleIdentity(self._guid, self._request_count)
        if isinstance(command, RecordingCommand | GetConfiguration):
            if not matches(target, self.application_name):
                return []
            return [CommandReply(identity, self.application_name, self._answer(command))]
        messages = self._turn([CommandRequest(identity, target, command)])
        replies = [message for message in messages if isinstance(message, CommandReply)]
        while self._loop.engine.answers.is_answering:
            replies += [message for message in self._turn(()) if isinstance(message, CommandReply)]
        return replies

    def _answer(self, command: RecordingCommand | GetConfiguration) -> Reply:
        """Answer what is not the engine's."""
        if isinstance(command, GetConfiguration):
            return configuration_reply(self._directory.read_configuration(), self.settings)
        given = self._read_configuration()
        if not isinstance(given, ServiceConfiguration):
            given = ServiceConfiguration(self.application_name, self.settings)
        return self._recording.answer(command, given)

    def _limits(self) -> ServiceLimits:
        """Return the limits of the configuration that the instance began with."""
        began_with = self._began_with()
        return began_with.limits if isinstance(began_with, ServiceConfiguration) else ServiceLimits()

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples to every queue of their topic; what is acknowledged is stored as configured.

        A sample that has to wait outside a full queue has no acknowledgment, and is not kept when the command ends:
        its producer still has it [QS 2.15.4].
        """
        answers: list[WriteAcknowledgment] = []
        for start in range(0, len(samples), SAMPLES_PER_TURN):
            messages = self._turn(samples[start : start + SAMPLES_PER_TURN])
            answers += [message for message in messages if isinstance(message, WriteAcknowledgment)]
        return answers

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Be a consumer of the queue: take at most so many samples, waiting at most so long for the first.

        While it waits, other commands may use the directory. A sample that was received and not acknowledged when the
        command ends goes back to the queue with the redelivered flag.
        """
        if max_samples <= 0:
            return []
        deadline = time.monotonic() + timeout_s
        while True:
            found = self._take(queue, max_samples, source_guid)
            if found or self._outstanding.get(queue):
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
        self._turn([Acknowledgment(each.queue, each.consumer_guid, each.identity, response) for each in deliveries])
        for each in deliveries:
            self._outstanding.get(each.queue, set()).discard(each.identity)

    def open(self) -> None:
        """Lock the directory and restore the service from it."""
        with ExitStack() as held:
            held.enter_context(locked(self._directory, self._wait_s, self._now))
            self._open_instance()
            if self._directory.is_stopping:
                self._end_instance()
                self._directory.create()
                self._open_instance()
            self._held = held.pop_all()

    def close(self) -> None:
        """Leave the state as the next command shall find it, and unlock the directory."""
        try:
            if self._is_sound and self._loop.engine.hosted.shutting_down:
                self._recording.end(RecordingEnd.STOPPED)
                self._directory.begin_stopping()
                self._end_instance()
                return
            if self._is_sound:
                if self._loop.engine.lose_producers(self._now()):
                    self._turn(())
                with suppress(OSError):  # on a full disk those of the last command stand
                    self._directory.write_statistics(self._loop.engine.hosted.statistics.snapshot())
                with suppress(DiskFull):  # what is there stays
                    self._loop.compact()
            self._stores.close()
        finally:
            self._is_sound = False
            self._held.close()

    def _open_instance(self) -> None:
        instance = self._directory.read_instance()
        if instance is None:
            lost = self._directory.lost_instance()
            if not self._discards_damaged:
                refuse_loss(lost, Synchronization.FULL)
            self._reported_damage += lost
        configured = None
        is_new = instance is None
        if instance is None:
            given = self._read_configuration()
            if given is not None:
                refuse_replication(given)
            configured, filesystem, is_kept = settings_of(given)
            named = self._configuration if isinstance(self._configuration, NamedConfiguration) else None
            instance = new_instance(
                configured.application_name,
                self._now(),
                filesystem,
                self._directory.path,
                keeps_service_state=is_kept,
                configured_by=named.label if named is not None else "",
                sources_digest=named.sources_digest if named is not None else "",
                settings_digest=settings_digest(given) if given is not None else "",
            )
            if isinstance(given, ServiceConfiguration):
                self._directory.write_configuration(live_text(given, given.service))
            self._directory.write_instance(instance)
        self._instance = instance
        filesystem = instance.filesystem
        assert filesystem.directory is not None
        self._stores = Stores(
            filesystem.directory,
            filesystem,
            instance.application_name,
            keeps_service_state=True,
            volatile_directory=self._directory.volatile,
            claim_wait_s=self._wait_s,
            discards_damaged=self._discards_damaged,
        )
        try:
            if configured is None:
                # What is stored replaces the default; nothing is where a crash came before it was.
                is_stored = self._stores.service is not None and bool(list(self._stores.service.load()))
                configured = DEFAULT_SETTINGS if is_stored else settings_of(self._read_configuration())[0]
            self._restore(replace(configured, application_name=instance.application_name))
            self._compare(is_new=is_new)
            if self._instance.format < FORMAT_VERSION:
                self._directory.write_instance(self._instance)
            # An earlier version took them without a word; their samples are not given up for it.
            self.warnings += unserved(self._loop.engine.hosted.settings())
        except Damaged:
            self._stores.abandon()
            raise
        except BaseException:
            self._stores.close()
            raise

    def _restore(self, configured: ServiceSettings) -> None:
        engine = ServiceEngine(
            configured,
            started_at=self._instance.started_at_ns,
            draw=drawn_incarnation,
            journal=Journal.EVERYTHING,
        )
        restore(engine, self._stores, self._now())
        try:
            if (stored := self._directory.read_statistics()) is not None:
                engine.hosted.statistics.restore(stored)
        except DiskFailed:
            raise
        except Damaged as error:
            file = self._directory.path / "statistics.bin"
            self._reported_damage.append(DamageReport(file, 0, 0, DamageKind.UNREADABLE, error.message))
        self._loop = ServiceLoop(engine, self._stores, self._now, limits=self._limits)
        self._recording = EmbeddedRecording(self._directory.path, engine, self._now)
        self._is_sound = True
        self._turn(())
        if self._stores.damage:
            self._loop.compact(all_damaged=True)

    def _read_configuration(self) -> Configuration | None:
        given = self._configuration
        return given.read() if isinstance(given, NamedConfiguration) else given

    def _compare(self, *, is_new: bool) -> None:
        """Report that the named configuration is not the one in force.

        Raises:
            Refused: the user named it.
        """
        named, instance = self._configuration, self._instance
        if not isinstance(named, NamedConfiguration):
            return
        if not is_new and named.is_that_of(instance, self._directory.path, self._began_with):
            if instance.format < FORMAT_VERSION:
                digests = {"sources_digest": named.sources_digest, "settings_digest": settings_digest(named.read())}
                self._instance = msgspec.structs.replace(instance, **digests)
            return
        drift = named.drift(instance, self._loop.engine.hosted.settings(), self._directory.path)
        if drift is None:
            return
        if is_new:
            # A stored configuration took its place [QS 2.14.1]: the instance did not begin with it.
            self._directory.write_instance(
                msgspec.structs.replace(instance, configured_by="", sources_digest="", settings_digest="")
            )
        if named.is_required:
            raise drift
        self.warnings.append(f"{drift.message}. {drift.remedy}")

    def _began_with(self) -> Configuration | None:
        """Return what the instance began with, as far as it is known: as a text, or as the first record has it."""
        text = self._directory.read_configuration()
        if text:
            with suppress(QsctlError):  # another version wrote it
                return read_live_text(text)
        records = self._stores.service.load() if self._stores.service is not None else ()
        return next((each.settings for each in records if isinstance(each, ServiceStarted)), None)

    def _end_instance(self) -> None:
        """What a service leaves behind when it stops. May be done again after a crash at any place."""

        def outlives(place: Place) -> bool:
            return place.is_persistent and place.settings.persistence.restore

        self._stores.forget(outlives)
        self._reported_damage += self._stores.damage
        self._stores.close()
        if not self._instance.keeps_service_state or self._forgets_configuration:
            self._stores.destroy_service()
        self._directory.forget_instance()
        self._is_sound = False

    def _turn(self, messages: Sequence[Inbound]) -> list[Outbound]:
        """One turn; nothing more is done once one has failed, for memory is then ahead of the disk."""
        if not self._is_sound:
            raise Refused("the service stopped at an earlier error", remedy="Run the command again.")
        if self._loop.engine.hosted.shutting_down:
            raise Refused("the service is shut down", remedy="The next command starts it again.")
        self._is_sound = False
        done = self._loop.turn(messages)
        self._is_sound = True
        self._recording.report(done)
        self._waiting_deliveries += [
            message
            for message in done.messages
            if isinstance(message, Delivery) and message.consumer_guid == self._guid
        ]
        answers = [each for each in done.messages if isinstance(each, WriteAcknowledgment | CommandReply)]
        if (failure := self._stores.failure) is not None and not answers:
            raise failure
        return done.messages

    def _take(self, queue: QueueName, max_samples: int, source_guid: Guid) -> list[Delivery]:
        """Open the window for so many samples, and close it again before anything else is done."""
        held = self._outstanding.setdefault(queue, set())
        threshold = max_samples + len(held) - 1
        self._turn(
            [
                ConsumerJoined(queue, self._guid, source_guid, unacked_threshold=threshold, reception_enabled=True),
                ConsumerJoined(queue, self._guid, source_guid, reception_enabled=False),
            ]
        )
        taken, self._waiting_deliveries = self._waiting_deliveries, []
        held.update(each.identity for each in taken)
        return taken

    def _wait_for_others(self, left_s: float) -> bool:
        """Let other commands use the directory until one has changed something or something is due; false: time is up.

        Called only while this command holds no sample.
        """
        deadline = self._loop.engine.next_deadline()
        if deadline is not None:
            left_s = min(left_s, max(0.0, (deadline - self._now()) / SECOND_NS))
        until = time.monotonic() + left_s
        self._reported_damage += self._stores.damage
        self.close()
        folder = Path(self._instance.directory)
        before = self._directory.fingerprint(folder)
        while (is_same := self._directory.fingerprint(folder) == before) and time.monotonic() < until:
            time.sleep(min(_POLL_S, max(0.0, until - time.monotonic())))
        self.open()
        return not is_same or deadline is not None
