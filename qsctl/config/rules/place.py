"""Where a rule looks: the settings together with the elements they were read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lxml.etree import _Element

from qsctl.config.inheritance import Reading
from qsctl.config.problems import Problem, Severity, problem_at
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, SharedSubscriberSettings


@dataclass(frozen=True, slots=True)
class Place:
    """A service."""

    configuration: ServiceConfiguration
    reading: Reading
    element: _Element
    working_directory: Path
    named_application: bool

    @property
    def path(self) -> str:
        """The service's path in the effective configuration."""
        return f"queuing_service[{self.configuration.name}]"

    def nearest(self, path: str) -> _Element:
        """The element that gave the value at `path`, else the nearest one around it."""
        while path:
            element = self.reading.elements.get(path)
            if element is not None:
                return element
            path = path.rpartition("/")[0]
        return self.element

    def error(self, path: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = "") -> Problem:
        """A problem that stops the service."""
        return problem_at(self.nearest(path), message, found=found, allowed=allowed, suggestion=suggestion)

    def unsupported(
        self, path: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = ""
    ) -> Problem:
        """What is valid and cannot be served here."""
        return problem_at(
            self.nearest(path),
            message,
            severity=Severity.UNSUPPORTED,
            found=found,
            allowed=allowed,
            suggestion=suggestion,
        )

    def warning(self, path: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = "") -> Problem:
        """A problem that does not."""
        return problem_at(
            self.nearest(path),
            message,
            severity=Severity.WARNING,
            found=found,
            allowed=allowed,
            suggestion=suggestion,
        )

    def note(self, path: str, message: str, *, found: str = "", suggestion: str = "") -> Problem:
        """Something worth knowing."""
        return problem_at(self.nearest(path), message, severity=Severity.NOTE, found=found, suggestion=suggestion)


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A queue in its subscriber, participant and service."""

    service: Place
    participant: DomainParticipantSettings
    subscriber: SharedSubscriberSettings
    queue: SharedReaderQueueSettings
    path: str

    def at(self, step: str) -> str:
        """A path inside the queue."""
        return f"{self.path}/{step}"

    def given(self, step: str) -> bool:
        """Whether a file gives the value, rather than a default."""
        return f"{self.path}/{step}" in self.service.reading.elements

    def error(self, step: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = "") -> Problem:
        """A problem that stops the service."""
        return self.service.error(self.at(step), message, found=found, allowed=allowed, suggestion=suggestion)

    def unsupported(
        self, step: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = ""
    ) -> Problem:
        """What is valid and cannot be served here."""
        return self.service.unsupported(self.at(step), message, found=found, allowed=allowed, suggestion=suggestion)

    def warning(self, step: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = "") -> Problem:
        """A problem that does not."""
        return self.service.warning(self.at(step), message, found=found, allowed=allowed, suggestion=suggestion)

    def note(self, step: str, message: str, *, found: str = "", suggestion: str = "") -> Problem:
        """Something worth knowing."""
        return self.service.note(self.at(step), message, found=found, suggestion=suggestion)


def queue_tag(queue: SharedReaderQueueSettings) -> str:
    """The tag of a queue."""
    return "dead_letter_shared_reader_queue" if queue.is_dead_letter else "shared_reader_queue"


def places_of_queues(place: Place) -> Iterator[QueuePlace]:
    """Every queue of a service."""
    for participant in place.configuration.service.participants:
        for subscriber in participant.subscribers:
            parent = f"{place.path}/domain_participant[{participant.name}]/shared_subscriber[{subscriber.name}]"
            for queue in subscriber.queues:
                yield QueuePlace(place, participant, subscriber, queue, f"{parent}/{queue_tag(queue)}[{queue.name}]")
