"""The place that a rule checks: the settings together with the elements they were read from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lxml.etree import _Element

from qsctl.config._reader import ServiceReading
from qsctl.config.settings import ServiceConfiguration
from qsctl.config.tables.queue import form_of
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, SharedSubscriberSettings, queues_of
from qsctl.declared.problems import Problem, Severity, problem_at


class Reports(ABC):
    """Problems at a path: of the effective configuration, or inside a queue."""

    __slots__ = ()

    @abstractmethod
    def nearest(self, path: str) -> _Element:
        """Return the element that gave the value at `path`, else the nearest one around it."""

    def error(self, path: str, message: str, *, found: str = "", allowed: str = "", suggestion: str = "") -> Problem:
        """Return a problem that stops the service."""
        return problem_at(self.nearest(path), message, found=found, allowed=allowed, suggestion=suggestion)

    def unsupported(self, path: str, message: str, **texts: str) -> Problem:
        """Return a problem for a setting that is valid but that this version or this machine cannot serve."""
        return replace(self.error(path, message, **texts), severity=Severity.UNSUPPORTED)

    def warning(self, path: str, message: str, **texts: str) -> Problem:
        """Return a problem that does not stop the service."""
        return replace(self.error(path, message, **texts), severity=Severity.WARNING)

    def note(self, path: str, message: str, **texts: str) -> Problem:
        """Return a problem that only informs the reader."""
        return replace(self.error(path, message, **texts), severity=Severity.NOTE)


@dataclass(frozen=True, slots=True)
class ServicePlace(Reports):
    """The service that a rule checks, with the file it was read from and where it is to run."""

    configuration: ServiceConfiguration
    reading: ServiceReading
    element: _Element
    working_directory: Path
    named_application: bool
    is_elsewhere: bool = False
    """Whether the service is of another machine, or of another time: what files there are here is not looked at."""
    without_tcp: bool = False
    """Whether participants that ask for TCP are served over UDP alone."""

    @property
    def path(self) -> str:
        """The service's path in the effective configuration."""
        return f"queuing_service[{self.configuration.name}]"

    def nearest(self, path: str) -> _Element:
        """Return the element that gave the value at `path`, else the nearest one around it."""
        while path:
            element = self.reading.elements.get(path)
            if element is not None:
                return element
            path = path.rpartition("/")[0]
        return self.element


@dataclass(frozen=True, slots=True)
class QueuePlace(Reports):
    """The queue that a rule checks, in its subscriber, participant and service."""

    service: ServicePlace
    participant: DomainParticipantSettings
    subscriber: SharedSubscriberSettings
    queue: SharedReaderQueueSettings
    path: str

    def nearest(self, path: str) -> _Element:
        """Return the element that gave the value at a path inside the queue, else the nearest one around it."""
        return self.service.nearest(f"{self.path}/{path}")

    def given(self, step: str) -> bool:
        """Return whether the value at a path inside the queue is written in a file, not a default."""
        return f"{self.path}/{step}" in self.service.reading.elements


def places_of_queues(place: ServicePlace) -> Iterator[QueuePlace]:
    """Yield every queue of a service."""
    for participant, subscriber, queue in queues_of(place.configuration.service):
        parent = f"{place.path}/domain_participant[{participant.name}]/shared_subscriber[{subscriber.name}]"
        yield QueuePlace(place, participant, subscriber, queue, f"{parent}/{form_of(queue).tag}[{queue.name}]")
