"""Discards as the CLI prints them: lines of a label, blanks and a number among other statistics; or flowed.

`show stats client`, `show client … stats` and `show message-vpn … stats` have a total for each side and its causes
below it; a cause whose words both sides have belongs to the side of the total above it. `show message-spool stats` has
causes of its own, with a colon behind each label. A banner names the side above each part (`*** Egress Discards ***`).
Lines between that are not discards are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from qsctl.profiles.listings import discards as d
from qsctl.profiles.listings._text import ListingText
from qsctl.profiles.listings.labels import read_count
from qsctl.profiles.listings.model import Discards

_FIGURE: Final = r"(?:[ \t]*[:=][ \t]*(\S*)|[ \t]+([0-9]{1,20})(?!\S))"
_FLOWED_CHARACTERS: Final = 160
"""A line longer than this is a listing that lost its line breaks: a label may begin behind any word."""
_ENDS: Final = re.compile(
    r"(?m)^[ \t]*(?:(?:Client|Neighbor|Message[ -]VPN|Queue|Topic Endpoint)(?: Name)?[ \t]*(?::|[ \t]{2})"
    r"|[^\s>#|]{1,200}[>#][ \t]+\S)|\*{3,}"
)
"""Between two figures: what follows belongs to another client, or to another command."""
_BANNER: Final = re.compile(r"\*{3,}[ \t]{0,80}(?:Ingress|Egress)\b[^*\n]{0,80}\*{3,}", re.IGNORECASE)
"""Between two figures: the next part of the same statistics."""
_Place = tuple[d.Statistics, d.Side | None, str]
"""A label: of which statistics, the side whose total it is, its plain words."""


def _words() -> dict[str, _Place]:
    found: dict[str, _Place] = {}
    for statistics, totals in d.TOTALS.items():
        for side, element in totals.items():
            words = d.plain_words(element)
            found[words] = (statistics, side, words)
    for cause in d.CAUSES:
        for words in (d.plain_words(cause.element), *cause.labels):
            if words:
                found.setdefault(words, (cause.statistics, None, words))
    return found


_WORDS: Final = _words()


def _spelled(words: str) -> str:
    """Return a pattern that matches a label with these plain words."""
    parts = [{"message": "(?:message|msg)", "messages": "(?:messages|msgs)"}.get(word, word) for word in words.split()]
    return r"[ \t_/-]+".join(parts)


@cache
def _pattern() -> re.Pattern[str]:
    words = "|".join(_spelled(words) for words in sorted(_WORDS, key=len, reverse=True))
    return re.compile(rf"(?<!\S)({words}){_FIGURE}", re.IGNORECASE)


def _figures(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield each label with its figure, except where a cause's words are the end of a longer label."""
    for match in _pattern().finditer(text, start, end):
        if _place(match)[1] is not None or _begins_a_label(text, match.start()):
            yield match


def _begins_a_label(text: str, at: int) -> bool:
    """Return whether a label may begin here: after a line's start, a figure or two blanks; anywhere in a long line."""
    furthest = max(0, at - _FLOWED_CHARACTERS)
    start = max(furthest, text.rfind("\n", furthest, at) + 1)
    before = text[start:at]
    if not before.strip() or before.endswith(("  ", "\t")) or before[-2:-1].isdigit():
        return True
    end = text.find("\n", at, start + _FLOWED_CHARACTERS)
    return end < 0 and len(text) - start > _FLOWED_CHARACTERS


def first_discards(text: str, start: int, end: int) -> int | None:
    """Return the position of the first list of discards: of a total, or a cause of the message spool; None without one.

    Args:
        text: of which a part is searched.
        start: of the part.
        end: of the part, exclusive.
    """
    for match in _figures(text, start, end):
        statistics, total, _ = _place(match)
        if total is not None or (statistics == "spool" and _figure(match) is not None):
            return match.start()
    return None


def _place(match: re.Match[str]) -> _Place:
    return _WORDS[d.plain_words(match[1])]


def _figure(match: re.Match[str]) -> int | None:
    """Return the number after a label; None where there is none."""
    try:
        return read_count((match[2] or match[3] or "").rstrip(",;"))
    except ValueError:
        return None


def read_discard_lines(source: ListingText, of: str) -> Discards | None:
    """Read the discards of one kind of statistics from the next one on; the position is then after the last of them.

    None where no figure of them can be read.

    Args:
        source: positioned before the first of them.
        of: the object that the statistics are of; those of the message spool are its own, unless they are a queue's.
    """
    totals: dict[str, int | None] = {"egress": None, "ingress": None}
    causes: dict[str, int] = {}
    side: d.Side = "egress"
    kind: d.Statistics | None = None
    end = source.at
    for match in _figures(source.text, source.at, len(source.text)):
        statistics, total, words = _place(match)
        if kind is not None and (statistics != kind or _is_end(source.text[end : match.start()])):
            break
        count = _figure(match)
        if count is None and statistics == "clients":
            source.note(
                f"{' '.join(match[1].split())} is not a whole number", path=of,
                found=match[2] or match[3] or "", allowed="a whole number", at=match.start(),
            )  # fmt: skip
        if total is not None:
            if totals[total] is not None:
                break  # of the next client
            side, totals[total] = total, count
        elif count is not None:
            cause = d.cause_named(statistics, side, words)
            assert cause is not None, "the pattern has no other words"
            if cause.key in causes:
                break
            causes[cause.key] = count
        kind, end = statistics, match.end()
    assert kind is not None, "a list of discards begins here"
    source.at = end
    if not causes and totals["egress"] is None and totals["ingress"] is None:
        return None
    whose = _of_spool(of) if kind == "spool" else of
    return Discards(whose, tuple(causes.items()), totals["egress"], totals["ingress"])


def _is_end(between: str) -> bool:
    """Return whether the text between two figures begins a new part."""
    if _ENDS.search(f".{between}") is None:
        return False
    return _ENDS.search(f".{_BANNER.sub('', between)}") is not None


def _of_spool(of: str) -> str:
    """Return the object of the spool's statistics: a queue or topic endpoint, a message VPN, or the whole spool."""
    if of.startswith((d.QUEUE, d.TOPIC_ENDPOINT)):
        return of
    return d.of_message_vpn(of.removeprefix(d.MESSAGE_VPN)) if of.startswith(d.MESSAGE_VPN) else d.SPOOL
