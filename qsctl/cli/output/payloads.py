"""A sample's content for people and scripts: JSON by its type, text where it is text, base64 where it is not."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from qsctl.cli.output.declared import Heading
from qsctl.cli.output.results import Plain, plain
from qsctl.errors import InvalidInput

if TYPE_CHECKING:
    from qsctl.config.sample_types.types import TypeLibrary

TEXT: Final = "text"
BASE64: Final = "base64"
JSON: Final = "json"
SHOWN_CHARACTERS: Final = 60
"""The most of a content that a table cell shows."""

PayloadField: TypeAlias = Annotated[
    Any, "the sample's content; with --types an object by the queue's type", Heading("Content")
]
PayloadEncodingField: TypeAlias = Annotated[str | None, "text (it is UTF-8), base64, or json (--types)"]

TypesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TYPE_FILE",
        help="XML or IDL file that defines the queue's type; samples are then shown as JSON.",
    ),
]


@dataclass(frozen=True, slots=True)
class ContentReader:
    """A reader of contents: by a type where one is given, otherwise unchanged."""

    types: TypeLibrary | None = None
    type_name: str = ""
    origins: Mapping[str, str] | None = None
    """In a dead-letter queue: the type of each queue that its samples come from, `<topic>@<subscriber>`."""

    def for_origin(self, queue: str) -> ContentReader:
        """Return how a sample is read that was in this queue before; as it is, where that queue's type is not known."""
        if self.types is None or self.origins is None:
            return self
        type_name = self.origins.get(queue, "")
        return ContentReader(self.types, type_name) if type_name in self.types else ContentReader()

    def read(self, payload: bytes | None) -> tuple[Plain, str | None]:
        """Return the content and its encoding; both None where it was not read from disk.

        A content that is not of the type is shown as it is, with its encoding.

        Raises:
            NotFound: the types do not hold the queue's.
            Unavailable: the DDS library, which does the conversion, is missing.
        """
        if payload is None:
            return None, None
        if self.types is not None:
            try:
                return plain(self.types.cdr_to_json(self.type_name, payload)), JSON
            except InvalidInput:
                pass
        text = _text(payload)
        return (base64.b64encode(payload).decode("ascii"), BASE64) if text is None else (text, TEXT)


def shown(content: Plain, encoding: str | None) -> str:
    """Return a table cell: one line, cut where it is long."""
    if encoding is None:
        return "(on disk)"
    if encoding == JSON:
        line = json.dumps(content, ensure_ascii=False)
    else:
        line = f"base64:{content}" if encoding == BASE64 else str(content)
    line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def _text(payload: bytes) -> str | None:
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # Control characters mean that the octets only happen to be UTF-8; printed, they could drive a terminal.
    return text if all(character.isprintable() or character in "\n\r\t" for character in text) else None
