"""IDL files: a text gives a document of `<types>` that is read like any other, or one error with a line."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.sample_types._type_document import parse_types, types_of_document
from qsctl.config.sample_types.types import read_types
from qsctl.declared.problems import InvalidFile

DICTIONARY = (
    b"module a {", b"struct S {", b"};", b"union U switch (long) {", b"case 1:", b"default:", b"enum E {", b"typedef ",
    b"sequence<", b"string<4>", b"const long N = ", b"@key ", b"//@key", b"@default(", b"bitmask B {", b"[2]", b"::",
    b"#include \"a.idl\"\n", b"<![CDATA[", b"&amp;",
)  # fmt: skip


def one_input(data: bytes) -> None:
    try:
        document = parse_types(data, "fuzzed.idl", None)
        parents, problems = types_of_document(document)
        _, found = read_types([(parent, None) for parent in parents])
    except InvalidFile as error:
        problems, found = list(error.problems), []
    lines = data.count(b"\n") + 2
    for problem in (*problems, *found):
        assert 0 <= problem.line <= lines, problem
        assert Path(problem.file).name == "fuzzed.idl"
