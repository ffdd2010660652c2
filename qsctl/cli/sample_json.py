"""Samples as JSON: text as it is, other types through their XML definition and CDR (manual, section 3.3.1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.payloads import ContentReader
from qsctl.errors import InvalidInput, NotFound, UsageError

if TYPE_CHECKING:
    from qsctl.client.admin import Administration
    from qsctl.config.types import TypeLibrary
    from qsctl.resource import ResourceIdentifier

UNTYPED: Final = frozenset({"", "DDS::String", "DDS::Octets"})
"""Types whose samples are kept as the text or the octets that were given."""


def payload_of_json(document: str, type_name: str, types: TypeLibrary | None) -> bytes:
    """A JSON document as a payload.

    Without type definitions, in a queue of text or octets: a JSON string is its text, anything else stays JSON, written
    compactly. With them: CDR of the queue's type.

    Raises:
        InvalidInput: it is not JSON, or does not fit the type.
        UsageError: the queue's type has members and no definition was given.
        Unavailable: the DDS library, which does the conversion, is missing.
    """
    try:
        value = json.loads(document)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{document[:60]!r} is not JSON: {error.msg} at column {error.colno}",
            remedy="Quote it for the shell: '{…}'.",
        ) from None
    except RecursionError:
        raise InvalidInput("the JSON document is nested too deeply", remedy="Nest less.") from None
    if types is not None:
        return types.json_to_cdr(type_name or "DDS::String", value)
    if type_name not in UNTYPED:
        raise UsageError(
            f"the queue's type is {type_name}", remedy="Give the XML file that defines it with --types, or use --file."
        )
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def read_type_file(path: Path | None) -> TypeLibrary | None:
    """The types that an XML file defines, in `<types>` or in a whole configuration; None without a file.

    Raises:
        ConfigError: the file cannot be read or a definition is wrong; every problem with its line.
        InvalidInput: it defines no types.
    """
    if path is None:
        return None
    from qsctl.config import type_file

    return type_file.read_type_file(path)


def reader_of(administration: Administration, queue: ResourceIdentifier, types: TypeLibrary | None) -> ContentReader:
    """How to read the contents of a queue's samples: by its type, when types were given.

    Raises:
        NotFound: the types do not hold the queue's.
    """
    if types is None:
        return ContentReader()
    type_name = administration.queue_data(queue)[0].body.type_name or "DDS::Octets"
    if type_name not in types:
        raise NotFound(
            f"the queue's type {type_name} is not in the file of --types",
            remedy=f"It has {', '.join(types.type_names()[:20])}.",
        )
    return ContentReader(types, type_name)
