"""The interface between the client side and a service, either embedded in this process or across a network.

`cli/location.py` makes connections; this interface does not depend on the location of the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from qsctl.core.admin.command import Command
from qsctl.core.messages import CommandReply, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.core.settings import ServiceSettings
from qsctl.identity import NIL_GUID, Guid
from qsctl.resource import ResourceIdentifier

if TYPE_CHECKING:
    from qsctl.transport.dds.participant import DomainSettings


class Connection(Protocol):
    """A service as a client sees it: commands and samples."""

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send a command to every service that matches the target pattern; return their replies, those of each in
        order.

        The list is empty if no service answered in time (services that do not match the pattern are silent [QS 5.2]).
        """

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples, and wait until every queue of the topic has acknowledged them, or the time limit has passed.

        The result has no entry for queues that do not acknowledge, or are full and let the producer wait [QS 2.4].
        """

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Receive at most `max_samples` samples of a queue as a consumer, waiting at most `timeout_s` for the first.

        With a source GUID only replies to that requester are received [QS 2.11.3]. Only the returned samples are
        consumed; those that are unacknowledged when the connection ends are redelivered, without counting an attempt.
        """

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: True accepts it, False rejects it [QS 2.5]."""


@runtime_checkable
class AcknowledgesMany(Protocol):
    """A connection with an efficient acknowledgment of many samples at once."""

    def acknowledge_all(self, deliveries: Sequence[Delivery], ok: bool) -> None:
        """Accept or reject all of these samples."""


@runtime_checkable
class ReachesServices(Protocol):
    """A connection to services that may not answer or not exist."""

    tolerates_silence: bool
    """Whether a command succeeds with the replies of the services that answer."""

    @property
    def place(self) -> str:
        """Return, for a message, the searched domain and the time limit."""

    def why_silent(self) -> str:
        """Return the likely reason why no service answered, and a remedy, as sentences."""

    @property
    def silent(self) -> frozenset[str]:
        """The application names of the services that did not answer the latest command."""


@runtime_checkable
class LocatesQueues(Protocol):
    """A connection to services whose queues producers and consumers reach over DDS."""

    @property
    def dds_settings(self) -> DomainSettings | None:
        """Return the settings by which clients join the domains; None: on loopback."""

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue."""


@runtime_checkable
class KnowsSettings(Protocol):
    """A connection that has the service's whole configuration, because it is embedded in this process."""

    @property
    def settings(self) -> ServiceSettings:
        """The current configuration."""


@runtime_checkable
class ReportsSilence(Protocol):
    """A connection that can report that no queue answers a write."""

    on_silence: Callable[[int], None] | None
    """Function called with the number of samples while `write` waits, if no queue has answered for a second."""


@runtime_checkable
class SendsBodies(Protocol):
    """A connection to a service that parses command bodies itself, with its own profiles and types."""

    def create_from_body(self, container: ResourceIdentifier, body: str, target: str = "*") -> list[CommandReply]:
        """Send a CREATE with its body unchanged; return the replies as `request` does."""

    def update_from_body(self, queue: ResourceIdentifier, body: str, target: str = "*") -> list[CommandReply]:
        """Send an UPDATE with its body unchanged; return the replies as `request` does."""
