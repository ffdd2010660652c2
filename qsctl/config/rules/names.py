"""Names that must be distinct among siblings: others refer to things by them (sections 3.3.2, 3.3.10, 5.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lxml.etree import _Element

from qsctl.config.document import text_of
from qsctl.config.problems import Problem, line_of, problem_at

QUEUE_TAGS = ("shared_reader_queue", "dead_letter_shared_reader_queue")


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
    """-cfgName selects a service by its name."""
    yield from _distinct(root.findall("queuing_service"), "services")


def participants_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Resource identifiers name a participant."""
    for service in root.iter("queuing_service"):
        yield from _distinct(service.findall("domain_participant"), "domain participants")


def subscribers_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Resource identifiers name a shared subscriber."""
    for participant in root.iter("domain_participant"):
        yield from _distinct(participant.findall("shared_subscriber"), "shared subscribers")


def sessions_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Queues refer to a session by its name (Table 3.16)."""
    for settings in root.iter("session_settings"):
        yield from _distinct(settings.findall("session"), "sessions")


def queues_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """Resource identifiers name a queue, and queues refer to the dead-letter queue by its name."""
    for subscriber in root.iter("shared_subscriber"):
        yield from _distinct((child for child in subscriber if child.tag in QUEUE_TAGS), "queues")


def profiles_have_distinct_names(root: _Element) -> Iterator[Problem]:
    """`base_name` refers to a profile by library and name."""
    for library in root.iter("qos_library"):
        yield from _distinct(library.findall("qos_profile"), "profiles")


def queues_have_distinct_topics(root: _Element) -> Iterator[Problem]:
    """A queue is known to its clients as <topic>@<shared subscriber>: one queue a topic (section 3.3.7)."""
    for subscriber in root.iter("shared_subscriber"):
        first: dict[str, _Element] = {}
        for topic in (child.find("topic_name") for child in subscriber if child.tag in QUEUE_TAGS):
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
