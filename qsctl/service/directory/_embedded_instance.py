"""The service instance of a state directory, restored from its stores.

Decides: how an instance, which has no process between commands, is created, restored and ended, and which files it
leaves for the next command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

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
from qsctl.core.hosted_service import HeldAtRest
from qsctl.core.messages import (
    CommandReply,
    CommandRequest,
    Delivery,
    Inbound,
    Outbound,
    QueueName,
    WriteAcknowledgment,
    one_by_one,
)
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import ServiceStarted
from qsctl.core.settings import ServiceSettings
from qsctl.errors import Damaged, QsctlError, Refused
from qsctl.eventlog.run_folder import RecordingEnd
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.service.directory._at_rest import Index
from qsctl.service.directory._embedded_settings import DEFAULT_SETTINGS, configuration_reply, settings_of
from qsctl.service.directory.state_directory import FORMAT_VERSION, StateDirectory, new_instance
from qsctl.service.recording.embedded import EmbeddedRecording
from qsctl.service.run.incarnations import drawn_incarnation
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.run.named_configuration import Configuration, NamedConfiguration, settings_digest
from qsctl.service.stores.places import HostedPlace
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.room import DiskFailed, DiskFull

Given: TypeAlias = Configuration | NamedConfiguration | None
"""The configuration of a new instance; None: the default."""


class EmbeddedInstance:
    """An instance with its engine and its stores, while its directory is locked.

    Args:
        directory: its state directory.
        configuration: for a new instance; an existing one is compared with it.
        wait_s: how long to wait for another service that uses its files.
        now: the wall clock in Unix nanoseconds.
        guid: the command's GUID as consumer and administrator.
        discards_damaged: whether to continue with the intact records after a loss.
    """

    def __init__(
        self,
        directory: StateDirectory,
        configuration: Given,
        wait_s: float,
        now: Callable[[], Nanoseconds],
        guid: Guid,
        *,
        discards_damaged: bool,
    ) -> None:
        self._directory = directory
        self._configuration = configuration
        self._wait_s = wait_s
        self._now = now
        self._guid = guid
        self._discards_damaged = discards_damaged
        self._reported_damage: list[DamageReport] = []
        self._is_sound = False
        self.forgets_configuration = False
        """Whether its end deletes the stored configuration even where that is PERSISTENT [QS 2.14.1]."""
        self.deliveries: list[Delivery] = []
        """Deliveries of the latest turns to the command as a consumer."""
        self.warnings: list[str] = []
        """Warnings about the service's configuration for the user."""

    @property
    def damage(self) -> list[DamageReport]:
        """The damage that was found; all intact records were restored."""
        return [*self._reported_damage, *self._stores.damage]

    @property
    def storage_warnings(self) -> list[str]:
        """Return the reasons why samples that are to be stored are refused now; empty: they are not."""
        failed = self._stores.failures.error
        warnings = [] if failed is None else [f"{failed.message}. {failed.remedy}"]
        if self._stores.is_scarce:
            place = self._directory.path
            warnings.append(f"{place}: the disk is nearly full, and queues refuse samples. Free space on it.")
        return warnings

    def request(self, identity: SampleIdentity, command: Command, target: str) -> list[CommandReply]:
        """Execute a command and return its replies; none where the target pattern does not match this service [QS
        5.2].
        """
        if isinstance(command, RecordingCommand | GetConfiguration):
            name = self.loop.engine.hosted.application_name
            return [CommandReply(identity, name, self._answer(command))] if matches(target, name) else []
        messages = self.turn([CommandRequest(identity, target, command)])
        replies = [message for message in messages if isinstance(message, CommandReply)]
        while self.loop.engine.answers.is_answering:
            replies += [message for message in self.turn(()) if isinstance(message, CommandReply)]
        return replies

    def close(self) -> Index | None:
        """Write the state for the next command; return the summary for its quick answers, if the instance is at
        rest.
        """
        index = None
        try:
            if self._is_sound and self.loop.engine.hosted.shutting_down:
                self.recording.end(RecordingEnd.STOPPED)
                self._directory.begin_stopping()
                self.end()
                return None
            if self._is_sound:
                if self.loop.engine.lose_producers(self._now()):
                    self.turn(())
                is_counted = False
                with suppress(OSError):  # on a full disk the figures of the last command stay
                    self._directory.write_statistics(self.loop.engine.hosted.statistics.snapshot())
                    is_counted = True
                with suppress(DiskFull):  # what is there stays
                    self.loop.compact()
                index = self._index() if is_counted else None
            self._stores.close()
            return index
        finally:
            self._is_sound = False

    def _index(self) -> Index | None:
        """Return the summary that is valid until something changes; None where a restart itself would change
        something.
        """
        engine, stores = self.loop.engine, self._stores
        if self.damage or stores.failures.error is not None or stores.is_scarce or self.recording.status.is_on:
            return None
        hosted = engine.hosted
        if not all(map(_is_at_rest, hosted.by_name.values())):
            return None
        held = {name: HeldAtRest(len(queue.held), queue.incarnation) for name, queue in hosted.by_name.items()}
        deadlines = [each for queue in hosted.by_name.values() if (each := queue.next_deadline()) is not None]
        until_ns = min(deadlines, default=INFINITE_NS)
        return Index(self._now(), until_ns, hosted.started(), held, tuple(unserved(hosted.settings())))

    def open(self) -> None:
        """Restore the instance in the directory, or create one.

        Raises:
            Damaged: stored records are lost, and the user has not accepted that: no file was changed.
            Refused: a later version wrote the state, or the configuration is not valid.
        """
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
        self.instance = instance
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
            if self.instance.format < FORMAT_VERSION:
                self._directory.write_instance(self.instance)
            # An earlier version took them without a word; their samples are not given up for it.
            self.warnings += unserved(self.loop.engine.hosted.settings())
        except Damaged:
            self._stores.abandon()
            raise
        except BaseException:
            self._stores.close()
            raise

    def _restore(self, configured: ServiceSettings) -> None:
        engine = ServiceEngine(
            configured,
            started_at=self.instance.started_at_ns,
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
        self.loop = ServiceLoop(engine, self._stores, self._now, limits=self._limits)
        self.recording = EmbeddedRecording(self._directory.path, engine, self._now)
        self._is_sound = True
        self.turn(())
        if self._stores.damage:
            self.loop.compact(all_damaged=True)

    def _read_configuration(self) -> Configuration | None:
        given = self._configuration
        return given.read() if isinstance(given, NamedConfiguration) else given

    def _compare(self, *, is_new: bool) -> None:
        """Report that the configuration in force differs from the named one.

        Raises:
            Refused: the user named it.
        """
        named, instance = self._configuration, self.instance
        if not isinstance(named, NamedConfiguration):
            return
        if not is_new and named.is_that_of(instance, self._directory.path, self._began_with):
            if instance.format < FORMAT_VERSION:
                digests = {"sources_digest": named.sources_digest, "settings_digest": settings_digest(named.read())}
                self.instance = msgspec.structs.replace(instance, **digests)
            return
        drift = named.drift(instance, self.loop.engine.hosted.settings(), self._directory.path)
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
        """Return the instance's first configuration, as far as its text or its first record has it."""
        text = self._directory.read_configuration()
        if text:
            with suppress(QsctlError):  # another version wrote it
                return read_live_text(text)
        records = self._stores.service.load() if self._stores.service is not None else ()
        return next((each.settings for each in records if isinstance(each, ServiceStarted)), None)

    def _limits(self) -> ServiceLimits:
        """Return the limits of the instance's first configuration."""
        began_with = self._began_with()
        return began_with.limits if isinstance(began_with, ServiceConfiguration) else ServiceLimits()

    def _answer(self, command: RecordingCommand | GetConfiguration) -> Reply:
        """Answer a command that the engine does not handle."""
        hosted = self.loop.engine.hosted
        if isinstance(command, GetConfiguration):
            return configuration_reply(self._directory.read_configuration(), hosted.settings())
        given = self._read_configuration()
        if not isinstance(given, ServiceConfiguration):
            given = ServiceConfiguration(hosted.application_name, hosted.settings())
        return self.recording.answer(command, given)

    def turn(self, messages: Sequence[Inbound]) -> list[Outbound]:
        """Run one turn of the engine and return its messages; after a failed turn the instance refuses further ones."""
        if messages:
            self.catch_up()
        sent = self._turn(messages)
        answers = [each for each in sent if isinstance(each, WriteAcknowledgment | CommandReply)]
        if (failure := self._stores.failures.error) is not None and not answers:
            raise failure
        return sent

    def catch_up(self) -> None:
        """Do what became due since the last turn: nothing runs between two calls, and it precedes the next one."""
        deadline = self.loop.next_deadline()
        if deadline is not None and deadline <= self._now():
            self._turn(())

    def _turn(self, messages: Sequence[Inbound]) -> list[Outbound]:
        if not self._is_sound:
            raise Refused("the service stopped at an earlier error", remedy="Run the command again.")
        if self.loop.engine.hosted.shutting_down:
            raise Refused("the service is shut down", remedy="The next command starts it again.")
        self._is_sound = False
        done = self.loop.turn(messages)
        self._is_sound = True
        self.recording.report(done)
        self.deliveries += [
            message
            for message in one_by_one(done.messages)
            if isinstance(message, Delivery) and message.consumer_guid == self._guid
        ]
        return done.messages

    def outstanding_count(self, queue: QueueName) -> int:
        """Return the number of samples of a queue that the command has received and not acknowledged."""
        hosted = self.loop.engine.hosted.by_name.get(queue)
        consumer = None if hosted is None else hosted.deliveries.consumers.get(self._guid)
        return 0 if consumer is None else consumer.outstanding_count

    def end(self) -> None:
        """End the instance as a service that stops; the call can be repeated after a crash at any point."""

        def outlives(place: HostedPlace) -> bool:
            return place.is_persistent and place.settings.persistence.restore

        self._stores.forget(outlives)
        self._reported_damage += self._stores.damage
        self._stores.close()
        if not self.instance.keeps_service_state or self.forgets_configuration:
            self._stores.destroy_service()
        self._directory.forget_instance()
        self._is_sound = False


def _is_at_rest(queue: SharedReaderQueue) -> bool:
    """Return whether a restart would leave a queue unchanged: nothing is in progress, and it is not suspended."""
    is_busy = queue.sent_count() or queue.undeliverable_count() or len(queue.reader_cache)
    return not (is_busy or queue.is_shut or queue.context.is_suspended)
