"""The service that tests use: queues, virtual time, and what the queues hold.

Decides: how tests are kept apart. Queues are deleted behind each test with their samples. A client that a test has left
open would consume from the next test's queue of the same name: then the service moves to another domain.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, cast

from qsctl.cli.administer.queue_options import QueueOptions
from qsctl.client.administration import Administration
from qsctl.client.connection import Connection
from qsctl.core.admin.reply import MessageData, MessageStatus
from qsctl.core.queue.settings import SessionSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import NoAnswer, Unavailable, UsageError
from qsctl.instant import INFINITE_NS, Nanoseconds, parse_duration
from qsctl.resource import ResourceIdentifier, parse_resource
from qsctl.testing.domains import ClaimedDomain
from qsctl.testing.running_service import PARTICIPANT, SESSION, SUBSCRIBER, RunningService
from qsctl.testing.virtual_clock import VirtualClock
from qsctl.transport.dds.clients.spare_participants import SpareParticipants
from qsctl.transport.dds.participant import participant_count

DEAD_LETTERS: Final = "DeadLetters"
"""The dead-letter queue of each shared subscriber, unless a test names another."""

_MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where its files are: in memory, where the system has such a place, for tests sync them often."""

STEPS_MAX: Final = 10_000
"""Deadlines that one `advance` stops at; the rest of the time then passes in one step."""


class SampleInQueue(NamedTuple):
    """A sample in a queue: its payload, its state, how often it was delivered, and why it died if it is a dead letter.

    `status` is UNDELIVERED while it waits, and SENT while a consumer has it.
    """

    payload: bytes
    status: str
    attempts: int
    redelivered: bool
    reason: str = ""
    """LIFESPAN or MAX_RETRIES of a dead letter."""
    came_from: str = ""
    """The queue of a dead letter."""


class VirtualService:
    """A queuing service in this process, whose time passes by `advance` alone.

    The application under test uses the wrappers of `qsctl.client` in the domain `domain_id`, in any thread or task.
    Methods wait until the service has processed what was sent to it; they may be called from any thread, one at a time.
    A wrapper sends what it wrote or acknowledged with its next call that waits, or with `flush`.

    Raises:
        Refused: each domain for tests is in use on this machine.
        Unavailable: DDS does not start here.
    """

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._directory: Path | None = None
        self._abandoned: list[ClaimedDomain] = []
        self._begin()

    def _begin(self) -> None:
        """Start in a domain of its own, with files of its own."""
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
        self._service = RunningService(self.domain_id, self._directory, self._clock)
        # Administration alone: of a connection it needs `request`.
        self._administration = Administration(cast("Connection", self._service))
        self._created: dict[str, ResourceIdentifier] = {}
        self._own_count = participant_count(self.domain_id) - others_count

    @property
    def domain_id(self) -> int:
        """The DDS domain of the queues: give it to the application. It may differ between tests."""
        return self._domain.domain_id

    @property
    def now(self) -> Nanoseconds:
        """Virtual time, in nanoseconds since 1970."""
        return self._clock()

    @property
    def log(self) -> str:
        """Lines of errors that the service has logged."""
        return self._service.log

    # Queues.

    def create_queue(self, name: str, subscriber: str = SUBSCRIBER, **settings: object) -> None:
        """Create a queue; the marker `qsctl_queue` calls this with its arguments.

        Args:
            name: of the queue, and of its topic unless `topic` is given.
            subscriber: the shared subscriber, which is created if there is none of the name.
            settings: those of `qsctl create-queue`, such as `max_delivery_retries=2`, `response_timeout="30s"`,
                `unacked_threshold=10`, `persistent=True`; `dead_letter` is `DeadLetters` unless given.

        Raises:
            UsageError: there is no such setting, or a value is wrong.
            Duplicated, AlreadyExists: the test has a queue of the name.
        """
        known = {each.name for each in QueueOptions.parameters()}
        if unknown := sorted(settings.keys() - known):
            raise UsageError(
                f"a queue has no setting {unknown[0]!r}", remedy=f"The settings are {', '.join(sorted(known))}."
            )
        place = self._subscriber(subscriber)
        if not settings.get("as_dead_letter"):
            settings = {"dead_letter": DEAD_LETTERS, **settings}
            if settings["dead_letter"] == DEAD_LETTERS:
                self._create(place, DEAD_LETTERS, {"as_dead_letter": True}, idempotent=True)
        self._create(place, name, settings)

    def _create(
        self, place: ResourceIdentifier, name: str, settings: dict[str, object], *, idempotent: bool = False
    ) -> None:
        made = QueueOptions(**{"session": SESSION, **settings}).settings(name)
        self._administration.create_queue(place, made, idempotent=idempotent)

    def _subscriber(self, name: str) -> ResourceIdentifier:
        place = parse_resource(f"/domain_participant/{PARTICIPANT}/shared_subscriber/{name}")
        if name != SUBSCRIBER and name not in self._created:
            settings = SharedSubscriberSettings(name, sessions=(SessionSettings(SESSION),))
            self._administration.create_subscriber(place.parent, settings, idempotent=True)
            self._created[name] = place
        return place

    def delete_queue(self, name: str) -> None:
        """Delete a queue with its samples.

        Raises:
            NotFound: there is none of that name.
        """
        self._administration.delete_queue(self._administration.queue_named(name))

    # Time.

    def advance(self, duration: str) -> None:
        """Let virtual time pass: every time-out, redelivery and expiry in it happens, at its instant and in order.

        Args:
            duration: such as `30s`, `1.5h`.

        Raises:
            UsageError: the duration cannot be read, or is infinite.
            NoAnswer: the service is busy all the while: a producer writes without end.
        """
        target = self._clock() + _finite(duration)
        rest = self._service.rest()
        for _ in range(STEPS_MAX):
            if rest.deadline is None or rest.deadline > target:
                break
            # A deadline that stays where it is, is of what the service does a moment later.
            self._clock.move_to(min(target, max(rest.deadline, self._clock() + 1)))
            rest = self._service.rest()
        self._clock.move_to(target)
        if rest.deadline is not None and rest.deadline <= target:
            self._service.rest()

    async def advance_async(self, duration: str) -> None:
        """Let virtual time pass, as `advance`, while other tasks of the event loop go on."""
        await _in_thread(lambda: self.advance(duration))

    def wait_until_processed(self) -> None:
        """Wait until the service has processed everything that producers and consumers of this process have sent.

        Raises:
            NoAnswer: it is busy for ten seconds: a producer writes without end.
        """
        self._service.rest()

    def wait_until_idle(self, timeout_s: float = 10.0) -> None:
        """Wait until consumers have answered everything that they were sent, and the queues send nothing more.

        What no consumer accepts may be left in the queues. Call it while consumers run in other threads.

        Args:
            timeout_s: longest wait, of real time.

        Raises:
            NoAnswer: consumers hold samples without an answer; the message states how many.
        """
        self._service.await_answers(timeout_s)

    async def wait_until_idle_async(self, timeout_s: float = 10.0) -> None:
        """Wait as `wait_until_idle`, while consumers that are tasks of the event loop go on."""
        await _in_thread(lambda: self.wait_until_idle(timeout_s))

    def restart(self) -> None:
        """Stop the service and start it again, as after a failure of its process: persistent samples are kept.

        Queues stay; samples of those that are not persistent are lost. Clients find the service again by themselves.
        """
        created = self._created
        self._stop()
        self._start()
        self._created = created

    # What the queues hold.

    def status(self, queue: str) -> SharedReaderQueueStatus:
        """Return the status of a queue: `total` has its counters, `current_message_count` its length.

        Raises:
            NotFound: there is no such queue.
        """
        self._service.rest()
        return self._administration.statuses(self._administration.queue_named(queue))[0].body

    def messages(self, queue: str) -> list[SampleInQueue]:
        """Return the samples in a queue, in its order; they stay.

        Raises:
            NotFound: there is no such queue.
        """
        self._service.rest()
        found = self._administration.messages(self._administration.queue_named(queue))
        return [_held(each.body) for each in found if each.body.status is not MessageStatus.DELIVERED]

    def payloads(self, queue: str) -> list[bytes]:
        """Return the payloads of the samples in a queue, in its order; they stay.

        Raises:
            NotFound: there is no such queue.
        """
        return [each.payload for each in self.messages(queue)]

    def dead_letters(self, queue: str) -> list[SampleInQueue]:
        """Return the samples of a queue that died and are in its subscriber's dead-letter queue `DeadLetters`.

        Raises:
            NotFound: there is no such queue.
        """
        resource = self._administration.queue_named(queue)
        subscriber = resource.parent.name
        label = f"{self._administration.queue_data(resource)[0].body.topic_name}@{subscriber}"
        return [each for each in self.messages(f"{subscriber}/{DEAD_LETTERS}") if each.came_from == label]

    # From test to test.

    def reset(self) -> None:
        """Delete every queue; the plug-in calls this behind each test.

        A client that the test has left open would consume from the next test's queue of the same name: then the service
        moves to another domain, with a RuntimeWarning.

        Raises:
            Refused: each domain for tests is in use on this machine.
        """
        if not self._clients_count() and self._delete_everything():
            return
        self._stop()
        left_count = participant_count(self.domain_id) - self._spares.count
        self._spares.close()
        if left_count:
            self._abandoned.append(self._domain)  # the client is in it as long as this process, or until it closes
        else:
            self._domain.close()
        self._begin()
        if left_count:
            warnings.warn(
                f"the test left {left_count} clients of qsctl open: close them, or use them in a with statement",
                RuntimeWarning,
                stacklevel=2,
            )

    def _delete_everything(self) -> bool:
        """Delete the queues and what was created for them. False: the service is busy, or has ended."""
        try:
            hosted = self._administration.hosted()
            for place in self._created.values():
                self._administration.delete_subscriber(place, idempotent=True)
            for queue in sorted(hosted.queues, key=lambda each: each.is_dead_letter):  # these go when they are unused
                self._administration.delete_queue(parse_resource(queue.resource), idempotent=True)
            self._created.clear()
            self._service.rest()
        except (NoAnswer, Unavailable):
            return False
        self._spares.look()
        return True

    def _clients_count(self) -> int:
        """Return the number of participants that clients of the tests have in the domain, where the service runs."""
        return participant_count(self.domain_id) - self._own_count - self._spares.count

    def _stop(self) -> None:
        self._service.close()

    def close(self) -> None:
        """End the service, and delete its files."""
        self._stop()
        self._spares.close()
        self._domain.close()
        for each in self._abandoned:
            each.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
