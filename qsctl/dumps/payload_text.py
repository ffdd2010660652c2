r"""The data of a message as one line of printable characters, and back.

Decides: the escapes. An octet that is not printable ASCII is written as ``\x`` and two hexadecimal digits, as the
vendor does it; so is a backslash that would otherwise look like one of those. All other backslashes, which are frequent
in HL7, are kept.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = re.compile(rb"[^ -~]|\\(?=x[0-9A-Fa-f]{2})")
_ESCAPE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def payload_text(data: bytes) -> str:
    """Return the data between quotes."""
    escaped = _ESCAPED.sub(lambda found: b"\\x%02x" % found[0][0], data)
    return f"'{escaped.decode('ascii')}'"


def payload_octets(text: str, encoding: str = "utf-8") -> bytes:
    """Return the data of such a text.

    Args:
        text: with its quotes.
        encoding: that of characters beyond ASCII, which other writers do not escape.

    Raises:
        ValueError: a quote is missing, so the line was cut.
    """
    if len(text) < 2 or text[0] != "'" or text[-1] != "'":
        raise ValueError("it does not begin and end with a quote")
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text[1:-1].encode(encoding, "surrogateescape"))
