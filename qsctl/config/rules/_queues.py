"""Rules across the settings of one queue [QS Tables 3.14 and 3.15, 2.15]."""

from __future__ import annotations

from collections.abc import Iterator

from lxml.etree import _Element

from qsctl.config.files.document import text_of
from qsctl.config.rules._place import QueuePlace
from qsctl.core.queue.hosting import reply_queue_name
from qsctl.core.queue.settings import UNLIMITED, ReplacementKind
from qsctl.declared.problems import Problem, did_you_mean, problem_at


def properties_are_given_once(root: _Element) -> Iterator[Problem]:
    """Check that each property of the dispatch policy is given once [QS 2.10]."""
    for distribution in root.iter("distribution"):
        seen: set[str] = set()
        for element in distribution.findall("property/value/element"):
            child = element.find("name")
            name = text_of(child) if child is not None else ""
            if name and name in seen:
                yield problem_at(element, f"the property {name} is given twice", found=name, allowed="once")
            seen.add(name)


def initial_count_is_within_max_count(place: QueuePlace) -> Iterator[Problem]:
    """Check that no more samples are allocated in advance than the queue may hold [QS 2.15.1.1]."""
    limits = place.queue.limits
    if limits.max_count != UNLIMITED and limits.initial_count > limits.max_count:
        yield place.error(
            "queue_qos/resource_limits/queue_allocation_settings/initial_count",
            "<initial_count> is greater than <max_count>",
            found=f"{limits.initial_count} > {limits.max_count}",
            allowed=f"1 to {limits.max_count}",
        )


def low_watermark_is_below_high_watermark(place: QueuePlace) -> Iterator[Problem]:
    """Check that the low watermark is at or below the high one [QS 2.15.3]."""
    low, high = place.queue.limits.low_watermark_percent, place.queue.limits.high_watermark_percent
    if low is not None and high is not None and low > high:
        yield place.error(
            "queue_qos/resource_limits/queue_watermark_settings/low_watermark",
            "<low_watermark> is above <high_watermark>",
            found=f"{low} > {high}",
            allowed=f"0 to {high}",
        )


def watermarks_need_a_limit(place: QueuePlace) -> Iterator[Problem]:
    """Find watermarks of a queue without a limit: they are percentages of it, and never crossed [QS 2.15.3]."""
    limits = place.queue.limits
    given = limits.low_watermark_percent is not None or limits.high_watermark_percent is not None
    if given and limits.max_count == UNLIMITED and limits.max_in_memory_bytes == UNLIMITED:
        yield place.warning(
            "queue_qos/resource_limits/queue_watermark_settings",
            "watermarks are percentages of limits, and the queue has none",
            found="max_count and max_in_memory_bytes are unlimited",
            allowed="a finite <max_count> or <max_in_memory_bytes>",
        )


def reply_topic_needs_reply_type(place: QueuePlace) -> Iterator[Problem]:
    """Find a `<reply_topic>` without `<reply_type>`, which is ignored [QS Table 3.14]."""
    if place.given("reply_topic") and not place.queue.reply_type:
        yield place.warning(
            "reply_topic", "<reply_topic> is ignored without <reply_type>", suggestion="Add <reply_type> or remove it."
        )


def reply_queue_does_not_collide(place: QueuePlace) -> Iterator[Problem]:
    """Check that no other queue has the topic of an implied reply queue ([QS Table 3.14], reply_type)."""
    queue = place.queue
    if not queue.reply_type:
        return
    for other in place.subscriber.queues:
        if other.name == queue.name and other is not queue:
            continue  # it is being created again
        implied_too = other is not queue and other.reply_type and other.reply_topic == queue.reply_topic
        if other.name == reply_queue_name(queue) and other.topic_name != queue.reply_topic:
            yield place.error(
                "reply_type",
                "the name of the implied reply queue is another queue's",
                found=other.name,
                allowed="a name of its own",
                suggestion=f"Rename the queue {other.name}, or remove <reply_type>.",
            )
        if other.topic_name == queue.reply_topic or (implied_too and other.name < queue.name):
            yield place.error(
                "reply_topic" if place.given("reply_topic") else "reply_type",
                f"the topic of the implied reply queue is taken by the queue {other.name}",
                found=queue.reply_topic,
                allowed="a topic of its own",
                suggestion="Give another <reply_topic>, or remove <reply_type> where the reply queue is declared.",
            )


def type_is_known_or_discovered(place: QueuePlace) -> Iterator[Problem]:
    """Note a type that no file defines: it is taken from the queue's writers [QS 3.3.1]."""
    types = place.service.configuration.types
    for step, name in (("type_name", place.queue.type_name), ("reply_type", place.queue.reply_type)):
        if not name or name in types:
            continue
        near = did_you_mean(name, types.type_names())
        message = (
            f"no file defines the type {name}: it is taken from the first writer of the topic, by its description or "
            "by its name"
        )
        if near:
            yield place.warning(step, message, found=name, suggestion=near)
        else:
            yield place.note(step, message, found=name)


def type_is_of_samples(place: QueuePlace) -> Iterator[Problem]:
    """Check that a queue's type is a struct or a union; enumerations and bit masks are members of those [QS 3.3.1]."""
    types = place.service.configuration.types
    for step, name in (("type_name", place.queue.type_name), ("reply_type", place.queue.reply_type)):
        if name and name in types and not types.is_of_samples(name):
            yield place.error(
                step,
                f"the type {name} is neither a struct nor a union",
                found=name,
                allowed=", ".join(types.type_names()[:20]),
            )


def waiting_needs_a_bounded_reader(place: QueuePlace) -> Iterator[Problem]:
    """Find a queue that never slows its producers when it is full: its reader cache has no limit [QS 2.15.4]."""
    if place.queue.limits.replacement is not ReplacementKind.WAIT_WITHOUT_REPLACEMENT:
        return
    if place.queue.limits.waiting_count_max == UNLIMITED:
        yield place.warning(
            "queue_qos/resource_limits/replacement_policy/kind",
            "waiting samples do not hold the producer back: the cache of the reader is unlimited",
            found="datareader_qos/resource_limits/max_samples is unlimited",
            allowed="a finite max_samples",
        )


def lifespan_lets_a_sample_live(place: QueuePlace) -> Iterator[Problem]:
    """Find a lifespan or response timeout of zero: each sample expires, or each delivery times out, at once."""
    if place.queue.lifespan_ns == 0:
        yield place.warning(
            "queue_qos/lifespan", "every sample expires as it arrives", found="0", allowed="more than 0"
        )
    if place.queue.redelivery.response_timeout_ns == 0:
        yield place.warning(
            "queue_qos/redelivery/response_timeout",
            "every delivery times out at once",
            found="0",
            allowed="more than 0",
        )


def monitoring_needs_general_monitoring(place: QueuePlace) -> Iterator[Problem]:
    """Find an `<entity_monitoring>` that is ignored, since general monitoring is off [QS Tables 3.5 and 3.6]."""
    general = place.service.configuration.monitoring
    own = place.nearest("entity_monitoring/enabled").getparent()
    if own is not None and own.tag == "entity_monitoring" and not (general and general.enabled):
        yield place.note(
            "entity_monitoring/enabled",
            "ignored: general monitoring is off",
            suggestion="Add <monitoring> to <queuing_service> to switch it on.",
        )
