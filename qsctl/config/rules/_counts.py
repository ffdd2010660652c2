"""The number of occurrences of a tag where the schema leaves the order free (the third column of Tables 3.1 to 3.12).

XSD 1.0 cannot express "any order, this one once, that one often"; here the numbers are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml.etree import _Element

from qsctl.declared.problems import Problem, problem_at

_ONCE: Final = (0, 1)
_REQUIRED: Final = (1, 1)
_ONE_OR_MORE: Final = (1, None)

COUNTS: Final[dict[str, dict[str, tuple[int, int | None]]]] = {
    "dds": {"types": _ONCE},
    "queuing_service": {
        "administration": _ONCE,
        "domain_participant": _ONE_OR_MORE,
        "monitoring": _ONCE,
        "persistence_settings": _ONCE,
        "replication_settings": _ONCE,
        "service_limits": _ONCE,
        "service_qos": _ONCE,
        "statistics": _ONCE,
    },
    "domain_participant": {
        "domain_id": _REQUIRED,
        "memory_management": _ONCE,
        "participant_qos": _ONCE,
        "shared_subscriber": _ONE_OR_MORE,
    },
    "shared_subscriber": {
        "dead_letter_shared_reader_queue": _ONCE,
        "publisher_qos": _ONCE,
        "session_settings": _REQUIRED,
        "subscriber_qos": _ONCE,
    },
}
"""Tag to its children with the least and the greatest number of each."""


def required_and_single_children(root: _Element) -> Iterator[Problem]:
    """Check that required children exist, and that single ones exist once."""
    for element in root.iter(*COUNTS):
        for tag, (least, most) in COUNTS[str(element.tag)].items():
            found = element.findall(tag)
            if len(found) < least:
                yield problem_at(element, f"<{element.tag}> needs a <{tag}>", found="none", allowed=f"<{tag}>…</{tag}>")
            if most is not None and len(found) > most:
                yield problem_at(
                    found[most],
                    f"<{tag}> occurs {len(found)} times in <{element.tag}>",
                    found=f"{len(found)} times",
                    allowed="once" if least else "at most once",
                    suggestion="There is one dead-letter queue in a shared subscriber [QS 3.3.11]."
                    if tag == "dead_letter_shared_reader_queue"
                    else "",
                )
