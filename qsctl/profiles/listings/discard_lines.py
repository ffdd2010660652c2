"""Discards as the CLI prints them: labelled lines, a total and its causes below it, in lines or flowed.

`show stats client` and `show client … stats` are read by the words of the SEMP elements (`Transmit Congestion`); the
side of a cause whose words both sides have is that of the total above it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from qsctl.profiles.listings import discards as d
from qsctl.profiles.listings.labels import read_count
from qsctl.profiles.listings.model import Discards
from qsctl.profiles.listings.text import Source

_COUNTED: Final = r"\s*[:=]\s*(\S+)"


@cache
def _pattern() -> re.Pattern[str]:
    words = {d.plain_words(element) for _, element in d.BY_ELEMENT} | {*map(d.plain_words, d.TOTALS.values())}
    alternatives = "|".join(r"[\s_-]+".join(map(re.escape, each.split())) for each in sorted(words, key=len)[::-1])
    return re.compile(rf"(?<!\S)({alternatives}){_COUNTED}", re.IGNORECASE)


def is_discards(line: str) -> bool:
    """Return whether a line begins a list of discards: it has a total."""
    return re.search(r"total[\s_-]+(egress|ingress)[\s_-]+discards\s*[:=]", line, re.IGNORECASE) is not None


def read_discard_lines(source: Source, of: str) -> Discards:
    """Read the discards from the next line with a total on, and leave the source behind the last of them.

    Raises:
        ListingError: a figure is no number.
    """
    totals: dict[str, int | None] = {"egress": None, "ingress": None}
    causes: dict[str, int] = {}
    side: d.Side = "egress"
    end = source.at
    for match in _pattern().finditer(source.text, source.at):
        if match.start() > end and not _is_near(source.text[end : match.start()], first=end == source.at):
            break
        words = d.plain_words(match[1])
        try:
            count = read_count(match[2].rstrip(",;"))
        except ValueError:
            source.note(
                f"{' '.join(match[1].split())} is not a whole number", path=of, found=match[2],
                allowed="a whole number", at=match.start(),
            )  # fmt: skip
            count = 0
        total = next((each for each, element in d.TOTALS.items() if d.plain_words(element) == words), None)
        if total is not None:
            if totals[total] is not None:
                break  # the next client's
            side = "egress" if total == "egress" else "ingress"
            totals[side] = count
        else:
            cause = _cause(side, words)
            causes.setdefault(cause.key, count)
        end = match.end()
    if end == source.at:
        source.fail("the total of discards has no figure", path=of, allowed="a whole number after the colon")
    source.at = end
    return Discards(of, tuple(causes.items()), totals["egress"], totals["ingress"])


def _is_near(between: str, *, first: bool) -> bool:
    """Return whether nothing else was listed between two figures.

    Other lines of statistics may stand there, no heading.
    """
    return first or not re.search(r"(?m)^[ \t]*(Client|Neighbor)\s*:|\*{3,}", between)


def _cause(side: d.Side, words: str) -> d.Cause:
    for each in (side, "ingress" if side == "egress" else "egress"):
        for (of_side, element), cause in d.BY_ELEMENT.items():
            if of_side == each and d.plain_words(element) == words:
                return cause
    raise AssertionError("the pattern has no other words")
