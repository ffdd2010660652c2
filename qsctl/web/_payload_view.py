"""The display form of a payload: JSON, text or hexadecimal octets, truncated to a limit."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from qsctl.cli.output.payloads import BASE64, JSON, TEXT
from qsctl.cli.output.results import Plain
from qsctl.errors import UNREADABLE

CHARACTERS_MAX: Final = 4096
"""Largest number of characters of a payload that the page shows."""
_PARSED_MAX: Final = 65_536
"""Largest number of characters of a text that is parsed as JSON."""
_LINE_OCTETS: Final = 16


class PayloadView(NamedTuple):
    """The display form of a payload: its kind (`json`, `text`, `hex` or empty), its text, and whether it was
    truncated.
    """

    kind: str
    text: str
    is_cut: bool


def payload_view(row: Mapping[str, Plain]) -> PayloadView:
    """Return the display form of the payload in a row with `payload` and `payload_encoding`."""
    content, encoding = row["payload"], row["payload_encoding"]
    if encoding == JSON:
        kind, text = "json", json.dumps(content, ensure_ascii=False, indent=2)
    elif encoding == TEXT:
        kind, text = _text(str(content))
    elif encoding == BASE64:
        octets = base64.b64decode(str(content)[: 4 * CHARACTERS_MAX])
        kind, text = "hex", _hexadecimal(octets[: CHARACTERS_MAX // 4])
        return PayloadView(kind, text, len(str(content)) * 3 // 4 - 2 > CHARACTERS_MAX // 4)
    else:
        kind, text = "", ""
    return PayloadView(kind, text[:CHARACTERS_MAX], len(text) > CHARACTERS_MAX)


def _text(text: str) -> tuple[str, str]:
    if len(text) <= _PARSED_MAX and text.lstrip()[:1] in ("{", "["):
        try:
            return "json", json.dumps(json.loads(text), ensure_ascii=False, indent=2)
        except UNREADABLE:
            pass
    return "text", text


def _hexadecimal(octets: bytes) -> str:
    lines = []
    for at in range(0, len(octets), _LINE_OCTETS):
        part = octets[at : at + _LINE_OCTETS]
        readable = "".join(chr(octet) if 32 <= octet < 127 else "." for octet in part)
        lines.append(f"{at:06x}  {part.hex(' '):<{3 * _LINE_OCTETS}} {readable}")
    return "\n".join(lines)
