"""The seam between the client side and a service, wherever that is: embedded in this process or across a network.

`cli/location.py` makes connections; nothing here knows where the service lives.
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
        """Send a command to every service that the target pattern means; their replies, those of each in order.

        An empty list: no service answered in time (a pattern that fits no service is not answered [QS 5.2]).
        """

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples; return when every queue of the topic has acknowledged, or time is up.

        Queues that acknowledge nothing, and those that let the producer wait, have no entry [QS 2.4].
        """

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Be a consumer of the queue: receive at most the given number of samples, waiting a bounded time for the
        first.

        With a source GUID only replies to that requester are received [QS 2.11.3]. No more samples are
        consumed than are returned; those that are unacknowledged when the connection ends are redelivered, and no
        attempt is counted.
        """

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: true accepts it, false rejects it [QS 2.5]."""


@runtime_checkable
class AcknowledgesMany(Protocol):
    """A connection for which acknowledging many samples at once is cheaper than one after the other."""

    def acknowledge_all(self, deliveries: Sequence[Delivery], ok: bool) -> None:
        """Acknowledge samples, all of them the same way."""


@runtime_checkable
class ReachesServices(Protocol):
    """A connection to services that may be silent, or not there."""

    tolerates_silence: bool
    """True: the replies of those that answer are enough."""

    @property
    def place(self) -> str:
        """Return where they are looked for, and for how long."""

    def why_silent(self) -> str:
        """Return the likely reason why none answered, and what to do, as sentences."""

    @property
    def silent(self) -> frozenset[str]:
        """The application names of those that did not answer the latest command for them."""


@runtime_checkable
class LocatesQueues(Protocol):
    """A connection to services whose queues producers and consumers reach over DDS."""

    @property
    def dds_settings(self) -> DomainSettings | None:
        """Return the way in which clients take part in the domains; None: on the loopback."""

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue."""


@runtime_checkable
class KnowsSettings(Protocol):
    """A connection to a service whose whole configuration is at hand: one embedded in this process."""

    @property
    def settings(self) -> ServiceSettings:
        """The configuration as it is now."""


@runtime_checkable
class ReportsSilence(Protocol):
    """A connection whose queues may take long to answer what is written."""

    on_silence: Callable[[int], None] | None
    """Called while `write` waits, with the number of samples, where no queue has answered for a second."""


@runtime_checkable
class SendsBodies(Protocol):
    """A connection to a service that reads the bodies of commands itself, with profiles and types of its own."""

    def create_from_body(self, container: ResourceIdentifier, body: str, target: str = "*") -> list[CommandReply]:
        """Send a CREATE with its body unchanged; replies as from `request`."""
