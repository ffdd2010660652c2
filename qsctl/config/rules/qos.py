"""QoS values that a queue cannot have (Table 3.14), and policies that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from qsctl.config.defaults import QOS_FIXED
from qsctl.config.problems import Problem
from qsctl.config.rules.place import QueuePlace


def changed_fixed_values(holder: str, qos: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Each fixed value that the QoS changes: tag, path in it, value found, value fixed."""
    for (owner, tag), fixed_values in QOS_FIXED.items():
        if owner != holder or tag not in qos:
            continue
        element = etree.fromstring(qos[tag])
        for step, fixed in fixed_values.items():
            found = element.findtext(step)
            if found is not None and found != fixed:
                yield tag, step, found, fixed


def fixed_values_stay(place: QueuePlace) -> Iterator[Problem]:
    """Reliability, history and service kind belong to the service (Table 3.14)."""
    for tag, step, found, fixed in changed_fixed_values("shared_reader_queue", place.queue.qos):
        yield place.error(
            f"{tag}/{step}",
            f"{step} of <{tag}> cannot be changed here (manual, Table 3.14)",
            found=found,
            allowed=fixed,
        )


def history_fits_resource_limits(place: QueuePlace) -> Iterator[Problem]:
    """What an instance may keep is not more than the entity may hold (DDS, RESOURCE_LIMITS)."""
    for tag, text in place.queue.qos.items():
        limits = etree.fromstring(text).find("resource_limits")
        if limits is None:
            continue
        most = _number(limits.findtext("max_samples"))
        each = _number(limits.findtext("max_samples_per_instance"))
        if most is not None and each is not None and each > most:
            yield place.error(
                f"{tag}/resource_limits",
                f"max_samples_per_instance of <{tag}> is greater than max_samples",
                found=f"{each} > {most}",
                allowed=f"at most {most}",
            )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
