"""A sample as a line of an exported file: JSON with all fields that an import needs to recreate the sample.

Decides the fields and their spelling: those of `qsctl get messages -o jsonl`, and further ones for an import.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Final

import msgspec

from qsctl.cli.output.payloads import BASE64, JSON, TEXT, ContentReader
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.records import DeadLetterReason
from qsctl.errors import InvalidInput, UsageError
from qsctl.identity import (
    NIL_GUID,
    NIL_IDENTITY,
    NIL_INCARNATION,
    SEQUENCE_NUMBER_MAX,
    Guid,
    Incarnation,
    SampleIdentity,
    guid_from_hex,
    identity_from_text,
    incarnation_from_text,
    incarnation_text,
)
from qsctl.instant import INFINITE_NS

if TYPE_CHECKING:
    from qsctl.config.sample_types.types import TypeLibrary
    from qsctl.core.admin.reply import MessageData


class SampleLine(msgspec.Struct, frozen=True):
    """One line of a file of samples; only `payload` is mandatory."""

    payload: msgspec.Raw
    payload_encoding: str = TEXT
    queue_name: str = ""
    position: int = 0
    identity: str = ""
    enqueued_at_ns: int = 0
    expires_at_ns: int | None = None
    attempts: int = 0
    redelivered: bool = False
    flags: int = 0
    source_guid: str = ""
    related_source_guid: str = ""
    related_identity: str = ""
    related_reader_guid: str = ""
    dead_letter_from: str = ""
    dead_letter_reason: str = ""
    dead_letter_position: int | None = None
    dead_letter_incarnation: str = ""
    incarnation: str = ""


_LINES: Final = msgspec.json.Decoder(SampleLine)
ATTEMPTS_MAX: Final = 2**31 - 1
_FLAGS_MAX: Final = 0xFFFF
_REASONS: Final = ("", *DeadLetterReason.__members__)


def line_of(sample: MessageData, reader: ContentReader) -> dict[str, object]:
    """Return the fields of a sample's line, in the order of `qsctl peek --format-help`."""
    payload, encoding = reader.for_origin(sample.dead_letter_from).read(sample.payload or b"")
    return {
        "queue_name": sample.queue_name,
        "position": sample.position,
        "identity": str(sample.identity),
        "enqueued_at_ns": sample.enqueued_at_ns,
        "expires_at_ns": None if sample.expires_at_ns >= INFINITE_NS else sample.expires_at_ns,
        "attempts": sample.attempts,
        "redelivered": sample.redelivered,
        "flags": sample.flags,
        "source_guid": _text_of(sample.source_guid),
        "related_source_guid": _text_of(sample.related_source_guid),
        "related_identity": "" if sample.related_identity == NIL_IDENTITY else str(sample.related_identity),
        "related_reader_guid": _text_of(sample.related_reader_guid),
        "dead_letter_from": sample.dead_letter_from,
        "dead_letter_reason": sample.dead_letter_reason,
        "dead_letter_position": sample.dead_letter_position if sample.dead_letter_from else None,
        "dead_letter_incarnation": _text_of_incarnation(sample.dead_letter_incarnation),
        "incarnation": _text_of_incarnation(sample.incarnation),
        "payload": payload,
        "payload_encoding": encoding,
    }


def sample_of_line(
    text: bytes, place: str, unnamed: SampleIdentity, types: TypeLibrary | None, type_name: str
) -> InsertedSample:
    """Parse a line as a sample.

    Args:
        text: the line.
        place: the file and the line's number, for errors.
        unnamed: the identity of a sample whose line has none.
        types: definitions for contents in JSON.
        type_name: the type of the queue that the sample is for.

    Raises:
        InvalidInput: the message names the place, the field, the value found and the allowed values.
    """
    try:
        text.decode()  # a content is kept unchanged from the line, and was not checked
        line = _LINES.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{place} is not UTF-8: octet 0x{text[error.start]:02x} at offset {error.start}",
            remedy="Write octets in base64, with payload_encoding base64.",
        ) from None
    except RecursionError:
        raise InvalidInput(f"{place}: it is nested too deeply", remedy="Use fewer levels of nesting.") from None
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"{place}: {error}", remedy="A line is one JSON object; `--format-help` has its fields."
        ) from None
    payload = _payload(line, place, types, type_name)
    return sample_of_fields(line, payload, place, unnamed)


def sample_of_fields(line: SampleLine, payload: bytes, place: str, unnamed: SampleIdentity) -> InsertedSample:
    """Return the sample of a line or a row, after checking its fields; raises as `sample_of_line`."""
    if not 0 <= line.flags <= _FLAGS_MAX:
        raise InvalidInput(f"{place}: flags is {line.flags}", remedy=f"Allowed: 0 to {_FLAGS_MAX}.")
    if line.dead_letter_reason not in _REASONS:
        raise InvalidInput(
            f"{place}: dead_letter_reason is {line.dead_letter_reason!r}",
            remedy="Allowed: LIFESPAN, MAX_RETRIES, empty.",
        )
    for field, value, most in (
        ("attempts", line.attempts, ATTEMPTS_MAX),
        ("position", line.position, SEQUENCE_NUMBER_MAX),
        ("enqueued_at_ns", line.enqueued_at_ns, INFINITE_NS),
        ("expires_at_ns", line.expires_at_ns or 0, INFINITE_NS),
    ):
        if not 0 <= value <= most:
            raise InvalidInput(f"{place}: {field} is {value}", remedy=f"Allowed: 0 to {most}.")
    dead_letter_position = line.dead_letter_position or 0
    if not 0 <= dead_letter_position <= SEQUENCE_NUMBER_MAX:
        raise InvalidInput(
            f"{place}: dead_letter_position is {dead_letter_position}", remedy=f"Allowed: 0 to {SEQUENCE_NUMBER_MAX}."
        )
    return InsertedSample(
        _identity(line.identity, "identity", place) if line.identity else unnamed,
        payload,
        _guid(line.source_guid, "source_guid", place),
        _guid(line.related_source_guid, "related_source_guid", place),
        _identity(line.related_identity, "related_identity", place) if line.related_identity else NIL_IDENTITY,
        _guid(line.related_reader_guid, "related_reader_guid", place),
        line.flags,
        line.redelivered,
        INFINITE_NS if line.expires_at_ns is None else line.expires_at_ns,
        line.dead_letter_from,
        line.dead_letter_reason,
        dead_letter_position,
        _incarnation(line.dead_letter_incarnation, "dead_letter_incarnation", place),
    )


def _payload(line: SampleLine, place: str, types: TypeLibrary | None, type_name: str) -> bytes:
    if line.payload_encoding == JSON:
        from qsctl.cli.samples.json_form import payload_of_json

        try:
            return payload_of_json(bytes(line.payload).decode(), type_name, types)
        except (InvalidInput, UsageError) as error:
            raise InvalidInput(f"{place}: payload: {error.message}", remedy=error.remedy) from None
    if line.payload_encoding not in (TEXT, BASE64):
        raise InvalidInput(
            f"{place}: payload_encoding is {line.payload_encoding!r}", remedy=f"Allowed: {TEXT}, {BASE64}, {JSON}."
        )
    try:
        value = json.loads(bytes(line.payload))
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits: no string at any rate
        value = None
    if not isinstance(value, str):
        raise InvalidInput(
            f"{place}: payload is {bytes(line.payload)[:40].decode()}, and its encoding {line.payload_encoding}",
            remedy=f"Write a string, or payload_encoding {JSON}.",
        )
    if line.payload_encoding == TEXT:
        return value.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(
            f"{place}: payload is not base64: {error}", remedy="Write what `qsctl export` wrote."
        ) from None


def _identity(text: str, field: str, place: str) -> SampleIdentity:
    try:
        return identity_from_text(text)
    except UsageError as error:
        raise InvalidInput(f"{place}: {field}: {error.message}", remedy=error.remedy) from None


def _guid(text: str, field: str, place: str) -> Guid:
    try:
        return guid_from_hex(text) if text else NIL_GUID
    except UsageError as error:
        raise InvalidInput(f"{place}: {field}: {error.message}", remedy=error.remedy) from None


def _incarnation(text: str, field: str, place: str) -> Incarnation:
    try:
        return incarnation_from_text(text)
    except UsageError as error:
        raise InvalidInput(f"{place}: {field}: {error.message}", remedy=error.remedy) from None


def _text_of_incarnation(incarnation: Incarnation) -> str:
    return "" if incarnation == NIL_INCARNATION else incarnation_text(incarnation)


def _text_of(guid: Guid) -> str:
    return "" if guid == NIL_GUID else guid.hex()
