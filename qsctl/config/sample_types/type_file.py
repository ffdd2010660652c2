"""The types that a file of XML or IDL defines, and codecs made of them, for programs [QS 3.3.1 and 8.1].

orders = read_type_file("types.xml").codec("shop::Order")
QueueProducer("Orders", codec=orders).write({"id": 7})
"""

from __future__ import annotations

from pathlib import Path

from qsctl.config.files.document import read_file
from qsctl.config.sample_types._type_document import parse_types, types_of_document
from qsctl.config.sample_types.types import TypeLibrary, read_types
from qsctl.declared.problems import InvalidFile, has_errors
from qsctl.errors import InvalidInput


def read_type_file(path: Path | str) -> TypeLibrary:
    """Return the types of a file: IDL where its name ends in `.idl`, else `<types>` or a whole configuration.

    Raises:
        InvalidFile: the file cannot be read or a definition is wrong; every problem with its line.
        InvalidInput: it has no `<types>`.
    """
    directory = Path(path).resolve().parent
    document = parse_types(read_file(Path(path), str(path)), str(path), directory)
    parents, problems = types_of_document(document)
    if has_errors(problems):
        raise InvalidFile(problems)
    if not parents:
        raise InvalidInput(f"{path} has no <types>", remedy="Give the file that defines the queue's type.")
    library, problems = read_types([(parent, directory) for parent in parents])
    if has_errors(problems):
        raise InvalidFile(problems)
    return library
