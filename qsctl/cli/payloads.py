"""A sample's payload for people and scripts: text where it is text, base64 where it is not."""

from __future__ import annotations

import base64
from typing import Final

TEXT: Final = "text"
BASE64: Final = "base64"
SHOWN_CHARACTERS: Final = 60
"""The most of a payload that a table cell shows."""

PAYLOAD_HELP: Final = {
    "payload": "the sample's content",
    "payload_encoding": "text (it is UTF-8) or base64",
}


def encoded(payload: bytes | None) -> tuple[str | None, str | None]:
    """The payload and its encoding; both None where the content was not read."""
    if payload is None:
        return None, None
    text = _text(payload)
    return (base64.b64encode(payload).decode("ascii"), BASE64) if text is None else (text, TEXT)


def shown(payload: str | None, encoding: str | None) -> str:
    """A table cell: one line, cut where it is long."""
    if payload is None or encoding is None:
        return "(on disk)"
    line = payload if encoding == TEXT else f"base64:{payload}"
    line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def _text(payload: bytes) -> str | None:
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # Control characters mean that the octets only happen to be UTF-8; printed, they could drive a terminal.
    return text if all(character.isprintable() or character in "\n\r\t" for character in text) else None
