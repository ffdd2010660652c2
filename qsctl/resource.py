"""Resource identifiers of the administration API [QS 5.2.1].

`/domain_participant/P/shared_subscriber/S/shared_reader_queue/Q/status` is a path of kinds and names.
Short forms that people type (`Q`, `S/Q`, `Topic@S`) are resolved against a service's data by `core.admin`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from qsctl.errors import UsageError


class ResourceKind(StrEnum):
    """The resource kinds, as [QS 5.2.1] spells them."""

    DOMAIN_PARTICIPANT = "domain_participant"
    SHARED_SUBSCRIBER = "shared_subscriber"
    SHARED_READER_QUEUE = "shared_reader_queue"
    DEAD_LETTER_SHARED_READER_QUEUE = "dead_letter_shared_reader_queue"
    STATUS = "status"
    DATA = "data"
    MESSAGE = "message"
    RECORDING = "recording"
    """The status of the service itself; an extension."""
    CONFIGURATION = "configuration"
    """The data of the service itself; an extension."""


_LEAVES = frozenset(
    {ResourceKind.STATUS, ResourceKind.DATA, ResourceKind.MESSAGE, ResourceKind.RECORDING, ResourceKind.CONFIGURATION}
)
_QUEUES = frozenset({ResourceKind.SHARED_READER_QUEUE, ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE})
_PARENTS: dict[ResourceKind, frozenset[ResourceKind | None]] = {
    ResourceKind.DOMAIN_PARTICIPANT: frozenset({None}),
    ResourceKind.SHARED_SUBSCRIBER: frozenset({ResourceKind.DOMAIN_PARTICIPANT}),
    ResourceKind.SHARED_READER_QUEUE: frozenset({ResourceKind.SHARED_SUBSCRIBER}),
    ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE: frozenset({ResourceKind.SHARED_SUBSCRIBER}),
    ResourceKind.STATUS: _QUEUES | {None},
    ResourceKind.DATA: _QUEUES | {None},
    ResourceKind.MESSAGE: frozenset(_QUEUES),
    ResourceKind.RECORDING: frozenset({None}),
    ResourceKind.CONFIGURATION: frozenset({None}),
}


@dataclass(frozen=True, slots=True)
class ResourceIdentifier:
    """The identifier of a resource of a service; with an empty path, the service itself.

    `names` holds (kind, name) pairs from the outermost resource to the innermost; `leaf` is the requested view, or
    None.
    """

    names: tuple[tuple[ResourceKind, str], ...] = ()
    leaf: ResourceKind | None = None

    def __str__(self) -> str:
        path = "".join(f"/{kind}/{name}" for kind, name in self.names)
        return f"{path}/{self.leaf}" if self.leaf else path or "/"

    @property
    def kind(self) -> ResourceKind | None:
        """The kind of the innermost named resource; None for the service."""
        return self.names[-1][0] if self.names else None

    @property
    def name(self) -> str:
        """The name of the innermost named resource; empty for the service."""
        return self.names[-1][1] if self.names else ""

    @property
    def parent(self) -> ResourceIdentifier:
        """The resource that contains this one, without a leaf."""
        return ResourceIdentifier(self.names[:-1])

    @property
    def bare(self) -> ResourceIdentifier:
        """The same resource without its leaf."""
        return ResourceIdentifier(self.names)

    def child(self, kind: ResourceKind, name: str) -> ResourceIdentifier:
        """Return the identifier of a resource of this kind and name inside this one."""
        return ResourceIdentifier((*self.names, (kind, name)))

    def at(self, leaf: ResourceKind) -> ResourceIdentifier:
        """Return the `status`, `data` or `message` view of this resource."""
        return ResourceIdentifier(self.names, leaf)

    def is_queue(self) -> bool:
        """Return whether the resource is a shared reader queue or a dead-letter queue."""
        return self.kind in _QUEUES


def parse_resource(text: str) -> ResourceIdentifier:
    """Read a full resource identifier.

    Raises:
        UsageError: an unknown kind, a kind inside the wrong parent, or a missing name; the message names the step.
    """
    if not text.startswith("/"):
        raise UsageError(
            f"{text!r} is not a resource identifier", remedy="It starts with '/': /domain_participant/NAME/…"
        )
    steps = text.strip("/").split("/") if text.strip("/") else []
    names: list[tuple[ResourceKind, str]] = []
    at = 0
    while at < len(steps):
        step = steps[at]
        try:
            kind = ResourceKind(step)
        except ValueError:
            raise UsageError(
                f"{text!r}: {step!r} is not a resource kind", remedy="The kinds are " + ", ".join(ResourceKind) + "."
            ) from None
        inside = names[-1][0] if names else None
        if inside not in _PARENTS[kind]:
            wanted = ", ".join(sorted(parent or "the service" for parent in _PARENTS[kind]))
            raise UsageError(
                f"{text!r}: {step!r} cannot be in {inside or 'the service'}", remedy=f"It belongs in {wanted}."
            )
        if kind in _LEAVES:
            if at + 1 < len(steps):
                raise UsageError(f"{text!r}: nothing may follow {step!r}", remedy=f"End the identifier with /{step}.")
            return ResourceIdentifier(tuple(names), kind)
        if at + 1 >= len(steps) or not steps[at + 1]:
            raise UsageError(f"{text!r}: {step!r} needs a name", remedy=f"Write /{step}/NAME.")
        names.append((kind, steps[at + 1]))
        at += 2
    return ResourceIdentifier(tuple(names))
