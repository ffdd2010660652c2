"""The `<types>` of a file of its own: named by `--types`, by a program, or by an `<include>`.

Such a file passes the schema and the rules that `<types>` inside a configuration pass. Where it is a whole
configuration, only its types are looked at: the rest may need variables that are not given here.
"""

from __future__ import annotations

from pathlib import Path

from lxml.etree import _Element

from qsctl.config.files.document import Document, parse_document
from qsctl.config.files.schema import check_document
from qsctl.config.sample_types._idl import types_of_idl
from qsctl.declared.problems import Problem, has_errors

ROOTS = ("types", "dds")


def parse_types(data: bytes, name: str, directory: Path | None) -> Document:
    """Parse a file of types: XML, or IDL where its name ends in `.idl`.

    Raises:
        InvalidFile: it is not well-formed; names the line.
    """
    if name.lower().endswith(".idl"):
        data = types_of_idl(data, name)
    return parse_document(data, name, directory=directory)


def types_of_document(document: Document) -> tuple[list[_Element], list[Problem]]:
    """Return the `<types>` elements of a document, and its problems; no elements where one of these is an error."""
    root = document.root
    if root.tag == "dds":
        for child in list(root):
            if child.tag != "types":
                root.remove(child)
    problems = check_document(document, ROOTS)
    if has_errors(problems):
        return [], problems
    return ([root] if root.tag == "types" else root.findall("types")), problems
