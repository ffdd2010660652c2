"""What administration needs of the engine [QS 5]: the seam between `handle` and `ServiceEngine`.

Decides: which lookups and changes a command may use. Replies, selectors and texts are `handle`'s; what a change does
to queues, records and messages is the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier


class AdminHost(Protocol):
    """The engine as a command sees it. Identifiers are bare: without a `status`, `data` or `message` leaf.

    Every method that takes an identifier expects one that `participants`, `subscribers` or `queues` lists.

    Raises:
        NotFound: the identifier names nothing; its message says what.
        Refused: the change is impossible; its message says why.
    """

    @property
    def application_name(self) -> str:
        """What a command's target pattern is matched against."""

    def settings(self) -> ServiceSettings:
        """The configuration as it is now: the one loaded, with every later change."""

    def participants(self) -> Mapping[ResourceIdentifier, DomainParticipantSettings]:
        """The domain participants, in the order of the configuration."""

    def subscribers(self) -> Mapping[ResourceIdentifier, SharedSubscriberSettings]:
        """The shared subscribers with the queues they hold now."""

    def queues(self) -> Mapping[ResourceIdentifier, SharedReaderQueueSettings]:
        """The queues, dead-letter queues and implicit reply queues [QS 2.11] included."""

    def create_queue(
        self, now: Nanoseconds, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings
    ) -> None:
        """Host one more queue, and its implicit reply queue where `reply_type` is set.

        The caller has checked for a queue of the same name (DUPLICATED against ALREADY_EXISTS, section 5.4.1).

        Raises:
            Refused: the name or the topic is taken in this subscriber, or the dead-letter settings are impossible.
        """

    @property
    def share_count(self) -> int:
        """How many samples of a queue a command may remove in one turn."""

    def deleted_with(self, queue: ResourceIdentifier) -> list[ResourceIdentifier]:
        """The queues that go when this one is deleted: it, and its implicit reply queue.

        Raises:
            Refused: as `delete_queue` does.
        """

    def shut(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Take no more samples into a queue that will be deleted; who waits outside is refused."""

    def is_shut(self, queue: ResourceIdentifier) -> bool:
        """Whether a queue is being deleted: `shut` was called, and it is still there."""

    def delete_queue(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Remove a queue, its samples and its implicit reply queue.

        Raises:
            Refused: it is an implicit reply queue, or the dead-letter queue of a queue that remains.
        """

    def create_subscriber(
        self, now: Nanoseconds, participant: ResourceIdentifier, settings: SharedSubscriberSettings
    ) -> None:
        """Host one more shared subscriber with its queues; all or nothing."""

    def delete_subscriber(self, now: Nanoseconds, subscriber: ResourceIdentifier) -> None:
        """Remove a shared subscriber with its queues."""

    def samples(self, queue: ResourceIdentifier) -> Iterator[Sample]:
        """The held samples in queue order. Do not change the queue while iterating."""

    def sample(self, queue: ResourceIdentifier, identity: SampleIdentity) -> Sample | None:
        """The held sample of this identity, by index: no scan."""

    def flush(self, now: Nanoseconds, queue: ResourceIdentifier, samples: Iterable[Sample]) -> int:
        """Remove those of these samples that the queue still holds; returns how many went."""

    def status(self, now: Nanoseconds, queue: ResourceIdentifier) -> SharedReaderQueueStatus:
        """The status as `GET …/status` answers it: reading starts `change` again from zero [QS 5.4.4]."""

    def request_shutdown(self) -> None:
        """Begin the shutdown sequence: the driver stops after it has sent what is ready [QS 5.4.9]."""
