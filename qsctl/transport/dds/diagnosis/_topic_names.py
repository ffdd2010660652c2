"""The topic of ours that a peer probably meant, when it uses a topic that no other endpoint has.

Decides: the required similarity of the names. Names that differ by a digit are often two topics; names that differ by
case, by punctuation or by a framework's prefix are one topic written in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_ROS_PREFIXES: Final = ("rt/", "rq/", "rr/")
"""Prefixes that ROS 2 adds to the names of its topics."""


def nearest_topic(name: str, topics: Iterable[str]) -> str | None:
    """Return the topic that differs from `name` in spelling, or in the shared subscriber alone; None: there is none."""
    wanted = _folded(name)
    base, at, _ = name.rpartition("@")
    for topic in topics:
        if topic != name and _folded(topic) == wanted:
            return topic
    for topic in topics:
        if at and topic != name and topic.rpartition("@")[0] == base and base:
            return topic
    return None


def _folded(name: str) -> str:
    for prefix in _ROS_PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return re.sub(r"[\s_./:-]+", "", name).casefold()
