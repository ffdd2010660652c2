"""XML type files: read as `--types` and programs read them, classes made, drawn values encoded and decoded.

Rules: a file gives types or a `QsctlError`; nothing in it runs; a value of a type comes back as it was; octets that are
no sample are refused.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path

from qsctl.config.sample_types.type_file import read_type_file
from qsctl.config.sample_types.type_model import Struct, Union
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.errors import InvalidInput, QsctlError, Refused
from tests.fuzz.drawn_values import TooLarge, ValueDrawing

TYPES_MAX = 4
CANARY = "qsctl_fuzz_canary"

DICTIONARY = (
    f"a:__import__('sys').modules.update({CANARY}=1)or'''".encode(),
    b'<struct name="S">',
    b"</struct>",
    b'<member name="m" type="long"/>',
    b'<member name="m" type="nonBasic" nonBasicTypeName="E" optional="true"/>',
    b'sequenceMaxLength="-1" ',
    b'arrayDimensions="3,2" ',
    b'stringMaxLength="9" ',
    b'<enum name="E"><enumerator name="A" value="-1"/></enum>',
    b'<case><caseDiscriminator value="default"/><member name="x" type="string"/></case>',
    b'extensibility="mutable" ',
    b'autoid="hash" ',
    b'bitBound="64" ',
    b'baseType="S" ',
    b'key="true" ',
    b"__class__",
    b"mro",
    b"None",
    b"class",
    b"2147483647",
    b"boolean",
    b"float32",
    b"octet",
    b"char",
    b"uint64",
    b"nonBasic",
)

_FILE = Path(tempfile.mkdtemp(prefix="qsctl-fuzz-types-")) / "types.xml"


def one_input(data: bytes) -> None:
    _FILE.write_bytes(data)
    try:
        library = read_type_file(_FILE)
    except QsctlError as error:
        assert error.message
        assert CANARY not in sys.modules
        return
    names = [name for name, each in library.definitions.items() if isinstance(each, Struct | Union)]
    for at, name in enumerate(names[-TYPES_MAX:]):
        _use_type(library, name, data, zlib.crc32(data) + at)
    assert CANARY not in sys.modules


def _use_type(library: TypeLibrary, name: str, data: bytes, seed: int) -> None:
    try:
        codec = library.codec(name)
    except Refused as error:
        assert error.message
        return
    try:
        value = ValueDrawing(library.definitions, seed).value(name)
    except TooLarge:
        value = None
    if value is not None:
        octets = codec.encode(value)
        back = codec.decode(octets)
        assert back == value, f"{name}: {value!r} came back as {back!r}"
        _decoded_or_refused(codec.decode, octets[: len(octets) // 2])
    _decoded_or_refused(codec.decode, b"\0\1\0\0" + data[:64])
    _decoded_or_refused(codec.decode, b"\0\x0b\0\0" + data[64:128])


def _decoded_or_refused(decode: object, octets: bytes) -> None:
    try:
        decode(octets)  # type: ignore[operator]
    except InvalidInput as error:
        assert error.message
