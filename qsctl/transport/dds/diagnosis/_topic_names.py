"""The topic of ours that a peer may have meant, when it is on one that no other endpoint uses.

Decides: how alike two names must be. Names that differ by a digit are often two topics; those that differ by case, by
punctuation or by what a framework puts in front are one topic written in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_ROS_PREFIXES: Final = ("rt/", "rq/", "rr/")
"""Prefixes that ROS 2 adds to the names of its topics."""


def nearest_topic(name: str, topics: Iterable[str]) -> str | None:
    """Return the topic that `name` is a misspelling of, or the same topic with another shared subscriber; else None."""
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
