"""Samples as JSON: text unchanged, other types by their XML definition and CDR [QS 3.3.1]."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.output.payloads import ContentReader
from qsctl.errors import InvalidInput, NotFound, UsageError
from qsctl.resource import ResourceKind, parse_resource

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.config.sample_types.types import TypeLibrary
    from qsctl.resource import ResourceIdentifier

UNTYPED: Final = frozenset({"", "DDS::String", "DDS::Octets"})
"""Types whose samples are stored as the given text or octets."""


def check_text_fits(type_name: str) -> None:
    """Refuse a text as a sample of a type that is neither text nor octets, since no consumer could read it.

    Raises:
        UsageError: names the type and the alternatives.
    """
    if type_name not in UNTYPED:
        raise UsageError(
            f"the queue's type is {type_name}, and --text writes samples of DDS::String or DDS::Octets",
            remedy="Give the sample with --json and the file that defines the type with --types, or its octets "
            "with --file.",
        )


def payload_of_json(document: str, type_name: str, types: TypeLibrary | None) -> bytes:
    """Return the payload of a JSON document.

    Without type definitions, in a queue of text or octets: of a JSON string its text, of anything else compact JSON.
    With them: CDR of the queue's type.

    Raises:
        InvalidInput: the document is not JSON, or does not fit the type.
        UsageError: the queue's type has members, and no definition was given.
        Unavailable: the DDS library, which does the conversion, is missing.
    """
    try:
        value = json.loads(document, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{document[:60]!r} is not JSON: {error.msg} at column {error.colno}",
            remedy="Quote it for the shell: '{…}'.",
        ) from None
    except RecursionError:
        raise InvalidInput("the JSON document is nested too deeply", remedy="Use fewer levels of nesting.") from None
    except ValueError as error:  # Python reads integers of some thousand digits at most
        raise InvalidInput(
            f"{document[:60]!r} has a number that is too long: {error}", remedy="Write it as a string."
        ) from None
    if types is not None:
        return types.json_to_cdr(type_name or "DDS::String", value)
    if type_name not in UNTYPED:
        raise UsageError(
            f"the queue's type is {type_name}",
            remedy="Give the XML or IDL file that defines it with --types, or use --file.",
        )
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _refuse_constant(name: str) -> float:
    raise InvalidInput(f"{name} is not JSON", remedy="JSON has no such numbers; write null or a string.")


def read_type_file(path: Path | None) -> TypeLibrary | None:
    """Return the type definitions of an XML or IDL file; None without a file.

    Raises:
        InvalidFile: the file cannot be read or a definition is wrong; every problem with its line.
        InvalidInput: it defines no types.
    """
    if path is None:
        return None
    from qsctl.config.sample_types import type_file

    return type_file.read_type_file(path)


def reader_of(administration: Administration, queue: ResourceIdentifier, types: TypeLibrary | None) -> ContentReader:
    """Return the reader of the contents of a queue's samples: by the queue's type, if definitions were given.

    A dead letter is read by the type of the queue that it comes from [QS 2.12].

    Raises:
        NotFound: the definitions do not contain the queue's type.
    """
    if types is None:
        return ContentReader()
    if queue.kind is ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE:
        return ContentReader(types, origins=_origins(administration))
    type_name = administration.queue_data(queue)[0].body.type_name or "DDS::Octets"
    if type_name not in types:
        raise NotFound(
            f"the queue's type {type_name} is not in the file of --types",
            remedy=f"It has {', '.join(types.type_names()[:20])}.",
        )
    return ContentReader(types, type_name)


def _origins(administration: Administration) -> dict[str, str]:
    """Return the type of each queue by `<topic>@<subscriber>`, which is how a dead letter names its original queue."""
    found: dict[str, str] = {}
    for service in administration.service_data():
        for data in service.body.queues:
            subscriber = parse_resource(data.resource).parent.name
            found[f"{data.topic_name}@{subscriber}"] = data.type_name or "DDS::Octets"
    return found
