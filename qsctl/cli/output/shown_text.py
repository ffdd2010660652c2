"""Text that is safe on a terminal: characters that a terminal interprets are escaped, whatever their source.

Decides which characters those are. Names, bodies and payloads come from peers and from files. A terminal interprets
control characters (C0 and C1) and marks of text direction, which make a line look like another; Unicode's line and
paragraph separators look like line ends.
"""

from __future__ import annotations

import re
from typing import Final

_OBEYED: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, delete, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # separators, byte order mark, annotations
    "\ud800-\udfff"  # halves of a pair: no encoding has them
    "\U000e0000-\U000e007f"  # tags: invisible letters
)
_IN_TEXT: Final = re.compile(f"[{_OBEYED}]")
_IN_LINE: Final = re.compile(f"[{_OBEYED}\t\n]")


def shown(text: str) -> str:
    """Return a text of one or more lines with the characters that a terminal interprets as Python escapes."""
    return text if text.isprintable() else _IN_TEXT.sub(_escape, text)


def shown_in_line(text: str) -> str:
    """Return a text as one line, with line feeds and tabs escaped, too, so that it cannot look like a row."""
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


def is_obeyed(text: str) -> bool:
    """Return whether a text has characters that a terminal interprets."""
    return not text.isprintable() and _IN_TEXT.search(text) is not None


def shown_json(text: str) -> str:
    """Return equivalent JSON without characters that a terminal interprets."""
    return text if text.isprintable() else _IN_TEXT.sub(_escape_json, text)


def _escape(matched: re.Match[str]) -> str:
    return matched[0].encode("unicode_escape").decode("ascii")


def _escape_json(matched: re.Match[str]) -> str:
    units = matched[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
