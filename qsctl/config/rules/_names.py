"""Names that must be distinct among siblings: others refer to things by them [QS 3.3.2, 3.3.10, 5.2.1]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lxml.etree import _Element

from qsctl.config.files.document import text_of
from qsctl.config.rules._place import QueuePlace, ServicePlace
from qsctl.config.tables.queue import QUEUE_FORMS
from qsctl.core.queue.hosting import reply_queue_name
from qsctl.declared.problems import Problem, line_of, problem_at

WIRE_NAME_BYTES_MAX: Final = 255
"""Of `queue_name` and `service_name` in the types on the wire: `string<255>`."""

_OWN_TOPICS: Final = ("ConsumerAvailability@", "ConsumerAcknowledgment@", "ProducerAcknowledgment@", "DCPS")
"""Prefixes of topics that belong to the service, and of those that belong to DDS itself."""


def _distinct(elements: Iterable[_Element], what: str) -> Iterator[Problem]:
    first: dict[str, _Element] = {}
    for element in elements:
        name = " ".join((element.get("name") or "").split())
        if not name:
            continue
        if name in first:
            yield problem_at(
                element,
                f"two {what} have the name {name}; the other is in line {line_of(first[name])}",
                found=f'name="{name}"',
                allowed="a name of its own",
            )
        first.setdefault(name, element)


def services_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Check the names of services, by which -cfgName selects one."""
    yield from _distinct(root.findall("queuing_service"), "services")


def participants_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Check the names of a service's participants, which resource identifiers contain [QS 5.2.1]."""
    for service in root.iter("queuing_service"):
        yield from _distinct(service.findall("domain_participant"), "domain participants")


def subscribers_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Check the names of a participant's shared subscribers, which resource identifiers contain [QS 5.2.1]."""
    for participant in root.iter("domain_participant"):
        yield from _distinct(participant.findall("shared_subscriber"), "shared subscribers")


def sessions_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Check the names of a shared subscriber's sessions, by which queues refer to them [QS Table 3.16]."""
    for settings in root.iter("session_settings"):
        yield from _distinct(settings.findall("session"), "sessions")


def queues_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Check the names of a shared subscriber's queues, which resource identifiers and `dead_letter_queue` contain."""
    for subscriber in root.iter("shared_subscriber"):
        yield from _distinct((child for child in subscriber if child.tag in QUEUE_FORMS), "queues")


def profiles_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Check the names of a library's profiles, by which `base_name` refers to them."""
    for library in root.iter("qos_library"):
        yield from _distinct(library.findall("qos_profile"), "profiles")


def queues_have_distinct_topics(root: _Element) -> Iterator[Problem]:
    """Check that queues of a shared subscriber differ in topic: clients name one <topic>@<subscriber> [QS 3.3.7]."""
    for subscriber in root.iter("shared_subscriber"):
        first: dict[str, _Element] = {}
        for topic in (child.find("topic_name") for child in subscriber if child.tag in QUEUE_FORMS):
            text = text_of(topic) if topic is not None else ""
            if topic is None or not text:
                continue
            if text in first:
                yield problem_at(
                    topic,
                    f"two queues of the shared subscriber have the topic {text}; "
                    f"the other is in line {line_of(first[text])}",
                    found=text,
                    allowed="one queue a topic",
                )
            first.setdefault(text, topic)


def names_fit_the_wire(place: QueuePlace) -> Iterator[Problem]:
    """Check that `participant/subscriber/queue` and `topic@subscriber` fit the `string<255>` of types on the wire."""
    queue, subscriber = place.queue, place.subscriber.name
    topics = {"topic_name": queue.topic_name, "reply_topic": queue.reply_topic if queue.reply_type else ""}
    container = f"{place.participant.name}/{subscriber}"
    given = f"{container}/{queue.name}"
    named = [("", given, given, "participant, subscriber and queue")]
    if queue.reply_type:
        implied = f"{container}/{reply_queue_name(queue)}"
        named.append(("reply_type", given, implied, "participant, subscriber and implied reply queue"))
    of_topics = {step: f"{topic}@{subscriber}" for step, topic in topics.items() if topic}
    named += [(step, name, name, "topic and subscriber") for step, name in of_topics.items()]
    for step, given, name, what in named:
        if any(len(part) > WIRE_NAME_BYTES_MAX for part in given.replace("@", "/").split("/")):
            continue  # the schema has reported it
        size_bytes = len(name.encode("utf-8", "replace"))
        if size_bytes > WIRE_NAME_BYTES_MAX:
            yield place.error(
                step,
                f"the names of {what} are too long together",
                found=f"{size_bytes} bytes: {name}",
                allowed=f"at most {WIRE_NAME_BYTES_MAX} bytes with the separators between them",
            )


def topics_are_no_endpoints_own(place: QueuePlace) -> Iterator[Problem]:
    """Check that a queue's topic is not one that the service, or DDS, uses for something else [QS 2.6]."""
    queue = place.queue
    for step, topic in (
        ("topic_name", queue.topic_name),
        ("reply_topic", queue.reply_topic if queue.reply_type else ""),
    ):
        if topic.startswith(_OWN_TOPICS) or _is_sent_to_consumers(topic, place):
            yield place.error(
                step,
                "the topic is used for something else in this domain",
                found=topic,
                allowed=f"no topic that begins with {', '.join(_OWN_TOPICS)}, and none that is <topic>@<subscriber> of "
                "a queue",
            )


def _is_sent_to_consumers(topic: str, place: QueuePlace) -> bool:
    # Most topics have no "@": the queues of a subscriber are not compared with each other then.
    return "@" in topic and any(
        topic == f"{other.topic_name}@{each.name}"
        for each in (*place.participant.subscribers, place.subscriber)
        for other in each.queues
    )


def application_name_fits_the_wire(place: ServicePlace) -> Iterator[Problem]:
    """Check that the application name, by which commands address a service, fits `string<255>` [QS 5.3]."""
    name = place.configuration.service.application_name
    size_bytes = len(name.encode("utf-8", "replace"))
    if size_bytes > WIRE_NAME_BYTES_MAX or not name.isprintable():
        yield place.error(
            place.path,
            "the application name cannot be sent",
            found=f"{size_bytes} bytes: {name}",
            allowed=f"printable characters, at most {WIRE_NAME_BYTES_MAX} bytes",
        )
