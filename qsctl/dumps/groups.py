"""Messages counted by what they have in common: where they wait, how long, for which thread.

Decides: the classes of age, and which thread a message waits for. Memory is that of the groups, not of the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import DAY_NS, SECOND_NS, Moment
from qsctl.dumps.states import TRANSLATION, is_error, meaning_of
from qsctl.errors import InvalidInput

MOST_GROUPS: Final = 100_000


class GroupBy(StrEnum):
    """The property that messages are counted by."""

    STATE = "state"
    AGE = "age"
    THREAD = "thread"
    SOURCE = "source"
    DESTINATION = "destination"
    TYPE = "type"
    PRIORITY = "priority"


_AGES: Final = (
    (60, "under 1 min"),
    (5 * 60, "1 to 5 min"),
    (15 * 60, "5 to 15 min"),
    (3600, "15 min to 1 h"),
    (4 * 3600, "1 to 4 h"),
    (86_400, "4 h to 1 day"),
    (7 * 86_400, "1 to 7 days"),
)
_OLDEST: Final = "over 7 days"
NO_TIME: Final = "no time stated"
NO_THREAD: Final = "-"
"""In the place of a thread that the listing does not name."""

_SortKey = tuple[object, ...]


@dataclass
class MessageGroup:
    """Messages that have the keys in common."""

    keys: tuple[str, ...]
    order: _SortKey
    messages: int = 0
    size_bytes: int = 0
    oldest: Moment | None = None
    newest: Moment | None = None

    def add(self, message: ListedMessage) -> None:
        """Count a message."""
        self.messages += 1
        self.size_bytes += message.size_bytes or 0
        created = message.created
        if created is not None:
            self.oldest = created if self.oldest is None or created < self.oldest else self.oldest
            self.newest = created if self.newest is None or created > self.newest else self.newest


def thread_of(message: ListedMessage) -> str:
    """Return the thread that holds a message, derived from its state if the listing does not name it."""
    if message.owner:
        return message.owner
    holder = meaning_of(message.state).holder
    if holder is None:
        return message.source or NO_THREAD
    if holder is TRANSLATION:
        return "translation"
    return (message.source if holder.side == "source" else message.destination) or NO_THREAD


def age_ns(created: Moment, now: Moment) -> int:
    """Return the time from `created` to `now`; a time of day without date is taken to be of the last day."""
    if created.has_date and now.has_date:
        return now.at_ns - created.at_ns
    return (now.at_ns - created.at_ns) % DAY_NS


def age_class(message: ListedMessage, now: Moment | None) -> tuple[int, str]:
    """Return the index and the name of the class that a message's age falls into."""
    if message.created is None or now is None:
        return len(_AGES) + 1, NO_TIME
    age_s = age_ns(message.created, now) / SECOND_NS
    for place, (limit_s, words) in enumerate(_AGES):
        if age_s < limit_s:
            return place, words
    return len(_AGES), _OLDEST


def grouped(messages: Iterable[ListedMessage], keys: Sequence[GroupBy], now: Moment | None) -> list[MessageGroup]:
    """Count messages by their keys, in the order of these.

    Args:
        messages: gone through once.
        keys: what they have in common.
        now: when ages are counted to; None: ages are not known.

    Raises:
        InvalidInput: there are more than `MOST_GROUPS`.
    """
    found: dict[tuple[str, ...], MessageGroup] = {}
    for message in messages:
        made = [_KEYS[key](message, now) for key in keys]
        words = tuple(word for _, word in made)
        group = found.get(words)
        if group is None:
            if len(found) == MOST_GROUPS:
                raise InvalidInput(
                    f"there are more than {MOST_GROUPS} groups", remedy="Group by fewer keys, or filter."
                )
            group = found[words] = MessageGroup(words, tuple(place for place, _ in made))
        group.add(message)
    return sorted(found.values(), key=lambda group: group.order)


def _by_word(word: str) -> tuple[object, str]:
    return word, word


_KEYS: Final[dict[GroupBy, Callable[[ListedMessage, Moment | None], tuple[object, str]]]] = {
    GroupBy.STATE: lambda message, _: ((message.state, message.queue), state_words(message)),
    GroupBy.AGE: age_class,
    GroupBy.THREAD: lambda message, _: _by_word(thread_of(message)),
    GroupBy.SOURCE: lambda message, _: _by_word(message.source or NO_THREAD),
    GroupBy.DESTINATION: lambda message, _: _by_word(message.destination or NO_THREAD),
    GroupBy.TYPE: lambda message, _: _by_word(message.type or NO_THREAD),
    GroupBy.PRIORITY: lambda message, _: (-(message.priority or 0), str(message.priority or NO_THREAD)),
}


def state_words(message: ListedMessage) -> str:
    """Return the number of a state with its name, or that of the queue where several have the number."""
    queue = "" if is_error(message.state) else message.queue
    return f"{message.state} {queue or meaning_of(message.state).name}"
