"""The labelled lines of a client and of a neighbour, in the listing's order, for reading and writing.

Words and order are those of [SOL-QUEUES]; one value a line and the indentation are ours, for the source has the listing
as one flowed line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from qsctl.profiles.listings.model import LARGEST_COUNT

Value: TypeAlias = str | int | float | bool | None

UNSPECIFIED: Final = "unspecified"
"""The broker's text where there is no value."""

_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_UPTIME: Final = re.compile(r"(\d{1,9})d (\d{1,9})h (\d{1,9})m (\d{1,9})s")


@dataclass(frozen=True, slots=True)
class LabelKind:
    """A kind of value: `read` raises ValueError for an invalid text; `allowed` names the valid ones in a message."""

    allowed: str
    read: Callable[[str], Value]
    write: Callable[[Value], str]


@dataclass(frozen=True, slots=True)
class Label:
    """One labelled value, or the heading of a group when `field` is empty; `grouped`: below the last heading."""

    text: str
    field: str = ""
    kind: LabelKind | None = None
    grouped: bool = False


def read_count(text: str) -> int:
    """Return a whole number that a broker's counter can have.

    Raises:
        ValueError: the text is not one.
    """
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError(text)
    number = int(text)
    if number > LARGEST_COUNT:
        raise ValueError(text)
    return number


def _one_of(words: dict[str, bool]) -> LabelKind:
    names = {value: word for word, value in words.items()}

    def read(text: str) -> bool:
        known = {word.lower(): value for word, value in words.items()}
        if text.lower() not in known:
            raise ValueError(text)
        return known[text.lower()]

    return LabelKind(" or ".join(words), read, lambda value: names[bool(value)])


def _read_uptime(text: str) -> int:
    found = _UPTIME.fullmatch(text)
    if not found:
        raise ValueError(text)
    return sum(int(number) * scale for number, scale in zip(found.groups(), _SECONDS.values(), strict=True))


def _write_uptime(value: Value) -> str:
    left = int(value or 0)
    parts = []
    for unit, scale in _SECONDS.items():
        parts.append(f"{left // scale}{unit}")
        left %= scale
    return " ".join(parts)


def _quoted(value: Value) -> str:
    return f"'{value}'"


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


TEXT: Final = LabelKind("text", str, str)
QUOTED: Final = LabelKind("text in single quotes", _unquoted, _quoted)
COUNT: Final = LabelKind("a whole number", read_count, str)
YES_NO: Final = _one_of({"Yes": True, "No": False})
RAISED: Final = _one_of({"raised": True, "not raised": False})
UPTIME: Final = LabelKind("an uptime as in 0d 0h 2m 52s", _read_uptime, _write_uptime)

CLIENT: Final = "Client"
NEIGHBOR: Final = "Neighbor"

CLIENT_LABELS: Final = (
    Label(CLIENT, "name", TEXT),
    Label("Type", "client_type", TEXT),
    Label("Client Profile", "client_profile", TEXT),
    Label("ACL Profile", "acl_profile", TEXT),
    Label("Subscriptions", "subscriptions", COUNT),
    Label("Eliding Enabled", "eliding_enabled", YES_NO),
    Label("Eliding Topics"),
    Label("Current", "eliding_topics", COUNT, grouped=True),
    Label("High Water Mark", "eliding_topics_high_water_mark", COUNT, grouped=True),
    Label("Deliver To One"),
    Label("Local Priority", "local_priority", COUNT, grouped=True),
    Label("Network Priority", "network_priority", COUNT, grouped=True),
    Label("Client Id", "client_id", COUNT),
    Label("Message VPN", "message_vpn", TEXT),
    Label("Uptime", "uptime_s", UPTIME),
    Label("Slow Subscriber", "slow_subscriber", YES_NO),
    Label("Client Username", "client_username", TEXT),
    Label("User", "user", QUOTED),
    Label("Computer", "computer", QUOTED),
    Label("Process ID", "process_id", COUNT),
    Label("Description", "description", TEXT),
    Label("Software Version", "software_version", TEXT),
    Label("Software Date", "software_date", TEXT),
    Label("Platform", "platform", TEXT),
    Label("One Shot Events"),
    Label("Large Message", "large_message", RAISED, grouped=True),
    Label("Message Too Big", "message_too_big", RAISED, grouped=True),
    Label("Parse Error", "parse_error", RAISED, grouped=True),
    Label("Max Eliding Topics", "max_eliding_topics", RAISED, grouped=True),
)
NEIGHBOR_LABELS: Final = (
    Label(NEIGHBOR, "name", TEXT),
    Label("Connect Via", "connect_via", TEXT),
    Label("Control Port", "control_port", TEXT),
)
ORDER_LABEL: Final = "Listed from lowest to highest priority"
ORDER_VALUE: Final = "(G-Guaranteed, D-Direct, C-Control)"
"""The line above a table of data queues."""
