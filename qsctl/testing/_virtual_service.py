"""The service that tests use: its queues, its virtual time, and access to the samples in its queues.

Decides how tests are isolated. After each test, its queues are deleted with their samples. A client that a test has
left open would consume from the next test's queue of the same name; in that case the service moves to another domain.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, Unpack, cast

from qsctl.client.administration import Administration
from qsctl.core.admin.reply import MessageData, MessageStatus
from qsctl.core.queue.settings import SessionSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import NoAnswer, Refused, Unavailable, UsageError
from qsctl.instant import INFINITE_NS, Nanoseconds, parse_duration
from qsctl.programs.called import called
from qsctl.programs.command_result import CommandResult
from qsctl.programs.queue_settings import QueueSettingOptions, check_settings
from qsctl.programs.service import FilePath, Service
from qsctl.resource import ResourceKind, parse_resource
from qsctl.testing._direct_connection import DirectConnection
from qsctl.testing._domains import ClaimedDomain
from qsctl.testing._running_service import PARTICIPANT, SESSION, SUBSCRIBER, RunningService
from qsctl.testing._virtual_clock import VirtualClock
from qsctl.transport.dds.clients.spare_participants import SpareParticipants
from qsctl.transport.dds.participant import participant_count

if TYPE_CHECKING:
    from qsctl.cli.administer.answers import ServiceAnswers
    from qsctl.client.connection import Connection

DEAD_LETTERS: Final = "DeadLetters"
"""The dead-letter queue of each shared subscriber, unless a test names another."""

_MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""The directory for the service's files: in memory if possible, since tests sync them often."""

STEPS_MAX: Final = 10_000
"""Largest number of deadlines at which one `advance` stops; the remaining time then passes in one step."""


class SampleInQueue(NamedTuple):
    """A sample in a queue: its payload, its status, its number of deliveries, and for a dead letter the cause.

    `status` is UNDELIVERED while the sample waits, and SENT while a consumer has not acknowledged it.
    """

    payload: bytes
    status: str
    attempts: int
    redelivered: bool
    reason: str = ""
    """LIFESPAN or MAX_RETRIES for a dead letter; else empty."""
    came_from: str = ""
    """The queue from which a dead letter came; else empty."""


class VirtualService(Service):
    """A `qsctl.Service` in this process, whose virtual time advances by `advance` alone.

    The application under test uses the wrappers of `qsctl.client` in the domain `domain_id`, in any thread or task.
    Each method first lets the service process everything that was sent to it; any thread may call it. A wrapper sends
    written samples and acknowledgments with its next call that waits, or with `flush`.

    Clients opened by its own methods, such as `producer`, are closed after each test.

    Raises:
        Refused: every domain for tests is in use on this machine.
        Unavailable: DDS cannot be started on this machine.
    """

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._directory: Path | None = None
        self._abandoned: list[ClaimedDomain] = []
        self._begin()
        # On a machine that is busy with other tests, a recording takes longer than a user's ten seconds to finish.
        super().__init__(self._new_connection(), f"dds:{self.domain_id}", timeout="60s")

    def _begin(self) -> None:
        """Start the service in a newly claimed domain, with a new directory."""
        self._domain = ClaimedDomain()
        self._spares = SpareParticipants(self.domain_id)
        former = self._directory
        self._directory = Path(tempfile.mkdtemp(prefix="qsctl-test-", dir=_MEMORY))
        if former is not None:
            shutil.rmtree(former, ignore_errors=True)
        try:
            self._start()
        except BaseException:
            self._spares.close()
            self._domain.close()
            raise

    def _start(self) -> None:
        assert self._directory is not None, "it has begun"
        others_count = participant_count(self.domain_id)
        self._running = RunningService(self.domain_id, self._directory, self._clock)
        self._own_count = participant_count(self.domain_id) - others_count

    def _new_connection(self) -> AbstractContextManager[DirectConnection]:
        return closing(DirectConnection(lambda: self._running, self.domain_id))

    def _connect_anew(self) -> None:
        """Connect to the service for the next test."""
        with self._lock:
            self._connection = self._held.enter_context(self._new_connection())
            self.location = f"dds:{self.domain_id}"
            self.options = replace(self.options, service=self.location)

    def _disconnect(self) -> None:
        """Close the connections and clients that the methods of this object have opened."""
        with self._lock:
            clients, self._clients, self._connection = self._clients, None, None
            with contextlib.suppress(NoAnswer, Unavailable, Refused):
                if clients is not None:
                    clients.leave(None, None, None)
            self._held.close()

    @property
    def domain_id(self) -> int:
        """The DDS domain of the queues, for the application under test; it may differ between tests."""
        return self._domain.domain_id

    @property
    def now(self) -> Nanoseconds:
        """Virtual time, in nanoseconds since 1970."""
        return self._clock()

    @property
    def log(self) -> str:
        """Lines of errors that the service has logged."""
        return self._running.log

    # Queues.

    def create_queue(
        self,
        name: str = "",
        subscriber: str = SUBSCRIBER,
        *,
        file: FilePath | None = None,
        xml: str | None = None,
        idempotent: bool = False,
        **settings: Unpack[QueueSettingOptions],
    ) -> CommandResult[ServiceAnswers]:
        """Create a queue; the marker `qsctl_queue` calls this with its arguments.

        Args:
            name: of the queue, and of its topic unless `topic` is given.
            subscriber: the shared subscriber, which is created if there is none of the name.
            file: file of an XML snippet with the configuration, instead of settings.
            xml: the XML snippet as text, instead of settings.
            idempotent: accept a queue that exists already with the same configuration.
            settings: those of `qsctl create-queue`, such as `max_delivery_retries=2`, `response_timeout="30s"`,
                `unacked_threshold=10`, `persistent=True`; `dead_letter` is `DeadLetters` unless given.

        Raises:
            UsageError: there is no such setting, or a value is wrong.
            Duplicated, AlreadyExists: the test has a queue of the name.
        """
        if file is not None or xml is not None or not name:
            return super().create_queue(
                name, subscriber=subscriber, file=file, xml=xml, idempotent=idempotent, **settings
            )
        check_settings(settings)
        return called(lambda: self._create_queue(name, subscriber, settings, idempotent=idempotent))

    def _create_queue(
        self, name: str, subscriber: str, settings: QueueSettingOptions, *, idempotent: bool
    ) -> ServiceAnswers:
        """Create a queue in the named subscriber, without looking the subscriber up in the service."""
        from qsctl.cli.administer.answers import answers
        from qsctl.cli.administer.queue_options import QueueOptions

        place = parse_resource(f"/domain_participant/{PARTICIPANT}/shared_subscriber/{subscriber}")
        made = {"session": SESSION, **settings}
        is_dead_letter = bool(made.get("as_dead_letter"))
        if not is_dead_letter:
            made.setdefault("dead_letter", DEAD_LETTERS)
        queue = QueueOptions(**made).settings(name)
        with self.options.open() as administration:
            if subscriber != SUBSCRIBER:
                container = SharedSubscriberSettings(subscriber, sessions=(SessionSettings(SESSION),))
                administration.create_subscriber(place.parent, container, idempotent=True)
            if made.get("dead_letter") == DEAD_LETTERS:
                dead = QueueOptions(session=SESSION, as_dead_letter=True).settings(DEAD_LETTERS)
                administration.create_queue(place, dead, idempotent=True)
            kind = ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE if is_dead_letter else ResourceKind.SHARED_READER_QUEUE
            return answers(place.child(kind, name), administration.create_queue(place, queue, idempotent=idempotent))

    # Time.

    def advance(self, duration: str) -> None:
        """Advance virtual time: every timeout, redelivery and expiry in it occurs at its instant and in order.

        Args:
            duration: such as `30s`, `1.5h`.

        Raises:
            UsageError: the duration cannot be parsed, or is infinite.
            NoAnswer: the service stays busy, because a producer writes without end.
        """
        target = self._clock() + _finite(duration)
        rest = self._running.rest()
        for _ in range(STEPS_MAX):
            if rest.deadline is None or rest.deadline > target:
                break
            # A deadline that does not move is for work that the service does a moment later.
            self._clock.move_to(min(target, max(rest.deadline, self._clock() + 1)))
            rest = self._running.rest()
        self._clock.move_to(target)
        if rest.deadline is not None and rest.deadline <= target:
            self._running.rest()

    async def advance_async(self, duration: str) -> None:
        """Advance virtual time as `advance`, while other tasks of the event loop continue to run."""
        await _in_thread(lambda: self.advance(duration))

    def wait_until_processed(self) -> None:
        """Wait until the service has processed everything that producers and consumers of this process have sent.

        Raises:
            NoAnswer: the service is busy for ten seconds, because a producer writes without end.
        """
        self._running.rest()

    def wait_until_idle(self, timeout_s: float = 10.0) -> None:
        """Wait until consumers have acknowledged or rejected every sample sent to them, and the queues send no more.

        Samples that no consumer accepts may remain in the queues. Call it while consumers run in other threads.

        Args:
            timeout_s: longest wait, in seconds of real time.

        Raises:
            NoAnswer: consumers have not acknowledged some samples; the message states how many.
        """
        self._running.await_answers(timeout_s)

    async def wait_until_idle_async(self, timeout_s: float = 10.0) -> None:
        """Wait as `wait_until_idle`, while consumers that are tasks of the event loop continue to run."""
        await _in_thread(lambda: self.wait_until_idle(timeout_s))

    def restart(self) -> None:
        """Stop the service and start it again, as after a failure of its process: persistent samples are kept.

        The queues are kept; samples of queues that are not persistent are lost. Clients reconnect by themselves.
        """
        self._running.close()
        self._start()

    # Samples in the queues.

    def samples(self, queue: str) -> list[SampleInQueue]:
        """Return the samples in a queue, in the queue's order, without consuming them.

        `messages` returns them as the rows of `qsctl get` instead.

        Raises:
            NotFound: the queue does not exist.
        """
        with self.options.open() as administration:
            found = administration.messages(administration.queue_named(queue))
        return [_held(each.body) for each in found if each.body.status is not MessageStatus.DELIVERED]

    def payloads(self, queue: str) -> list[bytes]:
        """Return the payloads of the samples in a queue, in the queue's order, without consuming them.

        Raises:
            NotFound: the queue does not exist.
        """
        return [each.payload for each in self.samples(queue)]

    def dead_letters(self, queue: str) -> list[SampleInQueue]:
        """Return the dead letters of a queue, which are in the dead-letter queue `DeadLetters` of its subscriber.

        Raises:
            NotFound: the queue does not exist.
        """
        with self.options.open() as administration:
            resource = administration.queue_named(queue)
            data = administration.queue_data(resource)[0].body
        subscriber = resource.parent.name
        label = f"{data.topic_name}@{subscriber}"
        return [each for each in self.samples(f"{subscriber}/{DEAD_LETTERS}") if each.came_from == label]

    # Isolation of tests.

    def reset(self) -> None:
        """Delete every queue; the plug-in calls this after each test.

        A client that the test has left open would consume from the next test's queue of the same name; in that case the
        service moves to another domain, with a RuntimeWarning.

        Raises:
            Refused: every domain for tests is in use on this machine.
        """
        self._disconnect()
        if not self._clients_count() and self._delete_everything():
            self._connect_anew()
            return
        self._running.close()
        left_count = participant_count(self.domain_id) - self._spares.count
        self._spares.close()
        if left_count:
            self._abandoned.append(self._domain)  # the client remains in the domain until it or this process ends
        else:
            self._domain.close()
        self._begin()
        self._connect_anew()
        if left_count:
            warnings.warn(
                f"the test left {left_count} clients of qsctl open: close them, or use them in a with statement",
                RuntimeWarning,
                stacklevel=2,
            )

    def _delete_everything(self) -> bool:
        """Delete the queues and subscribers of a test; return False where that is not possible.

        It is not possible if the service is busy, has ended, or lacks the shared subscriber that every test has.
        """
        # These commands use only `request` of the connection.
        administration = Administration(cast("Connection", self._running))
        try:
            hosted = administration.hosted()
            subscribers = {place.name: place for place in map(parse_resource, hosted.subscribers)}
            if SUBSCRIBER not in subscribers:
                return False
            for name, place in subscribers.items():
                if name != SUBSCRIBER:
                    administration.delete_subscriber(place, idempotent=True)
            queues = [each for each in hosted.queues if parse_resource(each.resource).parent.name == SUBSCRIBER]
            # Dead-letter queues can be deleted once none uses them; a reply queue goes with its request queue.
            for queue in sorted(queues, key=lambda each: each.is_dead_letter):
                administration.delete_queue(parse_resource(queue.resource), idempotent=True)
            self._running.rest()
        except (NoAnswer, Refused, Unavailable):
            return False
        self._spares.look()
        return True

    def _clients_count(self) -> int:
        """Return the number of DDS participants in the domain that belong to clients of the tests."""
        return participant_count(self.domain_id) - self._own_count - self._spares.count

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super()._leave(kind, error, trace)
        if os.getpid() != self._process_id:
            return
        self._running.close()
        self._spares.close()
        self._domain.close()
        for each in self._abandoned:
            each.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self


def _held(message: MessageData) -> SampleInQueue:
    return SampleInQueue(
        message.payload or b"",
        message.status.name,
        message.attempts,
        message.redelivered,
        message.dead_letter_reason,
        message.dead_letter_from,
    )


def _finite(duration: str) -> Nanoseconds:
    length = parse_duration(duration)
    if length >= INFINITE_NS:
        raise UsageError(f"the duration {duration!r} has no end", remedy="Give one such as 30s.")
    return length


async def _in_thread(call: Callable[[], None]) -> None:
    import anyio.to_thread

    await anyio.to_thread.run_sync(call)
