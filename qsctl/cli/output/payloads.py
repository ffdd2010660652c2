"""The content of a sample as JSON by its type, else as text, else as base64."""

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
"""Largest number of a content's characters that a table cell shows."""

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
    """A reader of contents: by a type if one is given, otherwise unchanged."""

    types: TypeLibrary | None = None
    type_name: str = ""
    origins: Mapping[str, str] | None = None
    """The types of the queues that dead letters come from, by `<topic>@<subscriber>`; None if no types were given."""

    def for_origin(self, queue: str) -> ContentReader:
        """Return the reader for dead letters of this queue; it leaves contents unchanged if their type is unknown."""
        if self.types is None or self.origins is None:
            return self
        type_name = self.origins.get(queue, "")
        return ContentReader(self.types, type_name) if type_name in self.types else ContentReader()

    def read(self, payload: bytes | None) -> tuple[Plain, str | None]:
        """Return the content and its encoding; both None if it was not read from disk.

        A content that does not match the type is returned unchanged, with its encoding.

        Raises:
            NotFound: the type definitions do not contain the queue's type.
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
    """Return the text of a table cell: one line, cut if it is long."""
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
