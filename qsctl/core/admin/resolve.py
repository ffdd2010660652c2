"""Resolution of the short names that people type against the resources of a service [QS 5.2.1].

A queue is `Q`, `S/Q`, `P/S/Q` or `Topic@S`; a shared subscriber `S` or `P/S`; a domain participant `P`. A text that
begins with `/` is read as a full resource identifier. An ambiguous name is an error that lists the candidates.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.errors import NotFound, UsageError
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource


def resolve_queue(text: str, data: ServiceData) -> ResourceIdentifier:
    """Return the queue that `text` names.

    Raises:
        NotFound: the service has no such queue; the remedy lists similar names.
        UsageError: several queues match, or a full identifier is malformed or does not identify a queue.
    """
    if text.startswith("/"):
        resource = parse_resource(text).bare
        if not resource.is_queue():
            raise UsageError(
                f"{text!r} names no queue", remedy="End it with /shared_reader_queue/NAME or a dead-letter queue."
            )
        return resource
    found = [parse_resource(queue.resource) for queue in queues_named(text, data)]
    return _the_one("queue", text, found, [parse_resource(queue.resource) for queue in data.queues])


def queues_named(text: str, data: ServiceData) -> list[QueueData]:
    """Return every queue that a short name matches."""
    if "@" in text:
        topic, _, subscriber = text.partition("@")
        return [
            queue
            for queue in data.queues
            if queue.topic_name == topic and parse_resource(queue.resource).parent.name == subscriber
        ]
    return [queue for queue in data.queues if _fits(text, parse_resource(queue.resource))]


def resolve_subscriber(text: str, data: ServiceData) -> ResourceIdentifier:
    """Return the shared subscriber that `text` names; an empty text means the service's only one.

    Raises:
        NotFound: the service has no such subscriber.
        UsageError: several match, or a full identifier identifies something else.
    """
    return _container(ResourceKind.SHARED_SUBSCRIBER, text, data.subscribers)


def resolve_participant(text: str, data: ServiceData) -> ResourceIdentifier:
    """Return the domain participant that `text` names; an empty text means the service's only one.

    Raises:
        NotFound: the service has no such participant.
        UsageError: several match, or a full identifier identifies something else.
    """
    return _container(ResourceKind.DOMAIN_PARTICIPANT, text, data.participants)


def short_name(resource: ResourceIdentifier) -> str:
    """Return the names of a resource without the kinds, `P/S/Q`, for error messages and tables."""
    return "/".join(name for _, name in resource.names)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint after a wrong name: up to three similar names, else the first of the known ones."""
    if not known:
        return "There is none yet."
    by_tail = {each.rsplit("/", 1)[-1]: each for each in known}
    near = difflib.get_close_matches(name.rsplit("/", 1)[-1].partition("@")[0], by_tail, n=3)
    if near:
        return f"Did you mean {' or '.join(by_tail[each] for each in near)}?"
    shown = ", ".join(known[:5])
    return f"There is {shown} and {len(known) - 5} more." if len(known) > 5 else f"There is {shown}."


def _container(kind: ResourceKind, text: str, known: Sequence[str]) -> ResourceIdentifier:
    spoken = kind.replace("_", " ")
    if text.startswith("/"):
        resource = parse_resource(text).bare
        if resource.kind is not kind:
            raise UsageError(f"{text!r} names no {spoken}", remedy=f"End it with /{kind}/NAME.")
        return resource
    resources = [parse_resource(each) for each in known]
    found = [each for each in resources if not text or _fits(text, each)]
    return _the_one(spoken, text, found, resources)


def _the_one(
    kind: str, text: str, found: Sequence[ResourceIdentifier], known: Sequence[ResourceIdentifier]
) -> ResourceIdentifier:
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(sorted(short_name(each) for each in found))
        what = f"{text!r} means several: {candidates}" if text else f"there are several {kind}s: {candidates}"
        raise UsageError(what, remedy="Write one of them.")
    what = f"there is no {kind} {text!r}" if text else f"there is no {kind}"
    raise NotFound(what, remedy=nearest(text, [short_name(each) for each in known]))


def _fits(text: str, resource: ResourceIdentifier) -> bool:
    wanted = text.split("/")
    return [name for _, name in resource.names][-len(wanted) :] == wanted
