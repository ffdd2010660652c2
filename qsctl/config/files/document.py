"""Bytes to an XML tree, safely: nothing is fetched, nothing is expanded, and size, depth and number are bounded.

Any document type declaration is refused before the parser sees it, and with it every entity (billion laughs, external
entities). The encoding is UTF-8 [QS 3.2]. Comments and processing instructions are dropped.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lxml import etree
from lxml.etree import _Element

from qsctl.declared.problems import NO_FILE, InvalidFile, Problem, error_at, line_of, refusal, shown


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Bounds on documents that are refused by size before they are parsed."""

    size_bytes: int
    depth: int = 64
    elements: int = 1_000_000
    text_characters: int = 65_536
    """Of one text or one attribute."""


FILE_LIMITS: Final = DocumentLimits(size_bytes=16 * 1024 * 1024)
BODY_LIMITS: Final = DocumentLimits(size_bytes=1024 * 1024, elements=100_000)
"""For XML that arrives with a command."""


@dataclass(frozen=True)
class Document:
    """A parsed source. `substituted` has, for an element, the variables in its text."""

    name: str
    root: _Element
    directory: Path | None = None
    substituted: dict[_Element, str] = field(default_factory=dict)


def read_file(path: Path, name: str, limits: DocumentLimits = FILE_LIMITS) -> bytes:
    """Return the bytes of a file, never more than the limit.

    Raises:
        InvalidFile: it is missing, not a file, not readable, or too large.
    """
    try:
        if path.is_dir():
            raise refusal(name, "this is a directory", allowed="an XML file")
        if path.exists() and not path.is_file():
            raise refusal(name, "this is not a regular file", allowed="an XML file")
        with path.open("rb") as stream:
            data = stream.read(limits.size_bytes + 1)
    except FileNotFoundError:
        raise refusal(name, NO_FILE, suggestion="Check the name and the working directory.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise refusal(name, f"the file cannot be read: {reason}") from None
    if len(data) > limits.size_bytes:
        size_bytes = path.stat().st_size
        raise refusal(
            name, "the file is too large", found=f"{size_bytes} bytes", allowed=f"at most {limits.size_bytes} bytes"
        )
    return data


_DECLARED = re.compile(rb"""\A<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_OTHER_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\x00\x00\xfe\xff", "UTF-32"))


def _check_encoding(data: bytes, name: str) -> bytes:
    allowed = "UTF-8 [QS 3.2]"
    for mark, encoding in _OTHER_MARKS:
        if data.startswith(mark):
            raise refusal(name, "the encoding is not UTF-8", line=1, found=encoding, allowed=allowed)
    data = data.removeprefix(b"\xef\xbb\xbf")
    zero = data.find(b"\0")
    if zero >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise refusal(name, "a NUL byte is not XML", line=line, allowed=allowed)
    declared = _DECLARED.match(data)
    if declared and declared[1].lower() not in {b"utf-8", b"utf8", b"us-ascii", b"ascii"} and not data.isascii():
        raise refusal(name, "the encoding is not UTF-8", line=1, found=declared[1].decode(), allowed=allowed)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refusal(
            name, "this is not UTF-8", line=line, found=f"byte 0x{data[error.start]:02x}", allowed=allowed
        ) from None
    return data


def _refuse_doctype(data: bytes, name: str) -> None:
    """Walk the prolog, the only place where a document type declaration is allowed; linear in its length."""
    at = 0
    while True:
        while data[at : at + 1].isspace():
            at += 1
        if data.startswith(b"<!--", at):
            end = data.find(b"-->", at + 4)
        elif data.startswith(b"<?", at):
            end = data.find(b"?>", at + 2)
        else:
            break
        if end < 0:
            return
        at = end + 2
        at += data.startswith(b">", at)
    if data[at : at + 9].upper() == b"<!DOCTYPE":
        raise refusal(
            name,
            "a document type declaration is refused: it could define entities",
            line=data.count(b"\n", 0, at) + 1,
            found="<!DOCTYPE",
            suggestion="Remove it; use $(NAME) for what varies [QS 3.4].",
        )


_MISMATCH = re.compile(r"Opening and ending tag mismatch: (\S+) line (\d+) and (\S+)")


def _syntax_problems(error: etree.XMLSyntaxError, parser: etree.XMLParser, name: str) -> InvalidFile:
    problems: list[Problem] = []
    log: Any = parser.error_log  # its stub knows no iteration; the log of the error also holds those of others
    for entry in itertools.islice(log, 10):
        message = shown(entry.message) or "this is not XML"
        mismatch = _MISMATCH.match(message)
        if mismatch:
            opened, line, closed = mismatch.groups()
            problems.append(
                error_at(
                    name,
                    entry.line,
                    f"<{opened}> of line {line} is closed by </{closed}>",
                    found=f"</{closed}>",
                    allowed=f"</{opened}>",
                    suggestion=f"Did you mean </{opened}>?",
                )
            )
        else:
            problems.append(error_at(name, entry.line, f"this is not XML: {message}"))
    if not problems:
        problems.append(error_at(name, error.lineno or 0, f"this is not XML: {error}"))
    return InvalidFile(problems)


def parse_document(
    data: bytes, name: str, limits: DocumentLimits = FILE_LIMITS, directory: Path | None = None
) -> Document:
    """Parse XML within the limits; problems refer to the document as `name`.

    Raises:
        InvalidFile: too large, empty, not UTF-8, not well-formed, with a document type declaration, or too deep.
    """
    if len(data) > limits.size_bytes:
        raise refusal(name, "the XML is too large", allowed=f"at most {limits.size_bytes} bytes")
    if not data.strip():
        raise refusal(name, "the file is empty", allowed="XML that starts with <dds>")
    data = _check_encoding(data, name)
    _refuse_doctype(data, name)
    if data.count(b"<") > 2 * limits.elements:
        raise refusal(name, "the XML has too many elements", allowed=f"at most {limits.elements}")
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser, base_url=name)
    except etree.XMLSyntaxError as error:
        raise _syntax_problems(error, parser, name) from None
    if root is None:
        raise refusal(name, "there is no element", allowed="XML that starts with <dds>")
    if getattr(root.getroottree().docinfo, "doctype", ""):
        raise refusal(name, "a document type declaration is refused", found="<!DOCTYPE")
    _check_shape(root, name, limits)
    return Document(name, root, directory)


def _check_shape(root: _Element, name: str, limits: DocumentLimits) -> None:
    depth = 0
    count = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        depth += 1
        count += 1
        if not isinstance(element.tag, str):
            raise refusal(name, "an entity is refused", line=line_of(element))
        if depth > limits.depth:
            line = line_of(element)
            raise refusal(name, "elements are nested too deeply", line=line, allowed=f"at most {limits.depth} levels")
        if count > limits.elements:
            raise refusal(name, "the XML has too many elements", allowed=f"at most {limits.elements}")
        if len(element.text or "") > limits.text_characters:
            raise _too_long(element, f"the text of <{shown(element.tag)}>", str(element.text), name, limits)
        for key, value in element.attrib.items():
            if len(value) > limits.text_characters:
                raise _too_long(
                    element, f"the attribute {shown(str(key))} of <{shown(element.tag)}>", str(value), name, limits
                )


def _too_long(element: _Element, what: str, text: str, name: str, limits: DocumentLimits) -> InvalidFile:
    return refusal(
        name,
        f"{what} is too long",
        line=line_of(element),
        found=f"{len(text)} characters: {shown(text[:80])}",
        allowed=f"at most {limits.text_characters} characters",
    )


def attributes_of(element: _Element) -> Mapping[str, str]:
    """Return the attributes without a namespace; those with one (xsi:…) are for other tools and are ignored."""
    return {str(key): str(value) for key, value in element.attrib.items() if not str(key).startswith("{")}


def text_of(element: _Element) -> str:
    """Return the text of an element with white space collapsed, line breaks included."""
    return " ".join((element.text or "").split())
