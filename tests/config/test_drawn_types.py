"""Type files drawn from a seed: what reads without a problem has samples that come back as they were."""

# ruff: noqa: E501

from __future__ import annotations

import random
from pathlib import Path

import pytest

from qsctl.config.sample_types.type_file import read_type_file
from qsctl.config.sample_types.type_model import Struct, Union
from qsctl.declared.problems import InvalidFile
from qsctl.errors import Refused
from tests.fuzz.drawn_values import TooLarge, ValueDrawing

NAMES = ("a", "b", "class", "m_class", "_x", "__y__", "None", "mro", "self", "value", "set", "get", "name", "serialize")
PRIMITIVES = ("boolean", "octet", "char", "int8", "uint16", "short", "long", "unsignedLong", "int64", "uint64", "float32", "double", "string")  # fmt: skip
EXTENSIBILITY = ("", ' extensibility="final"', ' extensibility="mutable"', ' extensibility="appendable"')


class TypeDrawing:
    """Draws `<types>`; a few of them contradict themselves, which reading says."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.structs: list[str] = []
        self.enums: list[str] = []
        self.others: list[str] = []

    def types(self) -> str:
        makers = (self.struct, self.struct, self.enum, self.bitmask, self.union, self.alias)
        return "".join(self.draw.choice(makers)(f"T{at}") for at in range(self.draw.randint(2, 9)))

    def enum(self, name: str) -> str:
        self.enums.append(name)
        bits = self.draw.choice((8, 16, 32))
        number = self.draw.choice((0, -1, 5, 100))
        names = self.draw.sample(NAMES, self.draw.randint(1, 6))
        literals = "".join(f'<enumerator name="{each}" value="{number + at}"/>' for at, each in enumerate(names))
        return f'<enum name="{name}" bitBound="{bits}">{literals}</enum>'

    def bitmask(self, name: str) -> str:
        self.others.append(name)
        bits = self.draw.choice((8, 12, 32, 64))
        names = self.draw.sample(NAMES, self.draw.randint(1, 6))
        places = self.draw.sample(range(bits), len(names))
        flags = "".join(f'<flag name="{each}" position="{at}"/>' for each, at in zip(names, places, strict=True))
        return f'<bitmask name="{name}" bitBound="{bits}">{flags}</bitmask>'

    def struct(self, name: str) -> str:
        base = f' baseType="{self.draw.choice(self.structs)}"' if self.structs and self.draw.random() < 0.2 else ""
        names = self.draw.sample(NAMES, self.draw.randint(0, 5))
        if base:
            names = [f"d{len(self.structs)}_{each}" for each in names]
        hashed = ' autoid="hash"' if self.draw.random() < 0.2 else ""
        members = "".join(self.member(each) for each in names)
        self.structs.append(name)
        return f'<struct name="{name}"{base}{hashed}{self.draw.choice(EXTENSIBILITY)}>{members}</struct>'

    def union(self, name: str) -> str:
        discriminator = self.draw.choice([*self.enums, "boolean", "char", "octet", "long", "int64"])
        labels = {"boolean": ["true", "false"], "char": ["a", "b", "c"]}.get(discriminator, ["0", "1", "2", "7"])
        if discriminator in self.enums:
            labels = []
        cases = [[label] for label in labels[: self.draw.randint(1, 4)]] or [["default"]]
        if self.draw.random() < 0.5:
            cases[-1].append("default")
        names = self.draw.sample(NAMES, len(cases))
        text = "".join(
            "<case>"
            + "".join(f'<caseDiscriminator value="{label}"/>' for label in case)
            + self.member(each, optional=False)
            + "</case>"
            for case, each in zip(cases, names, strict=True)
        )
        self.others.append(name)
        return f'<union name="{name}"{self.draw.choice(EXTENSIBILITY)}><discriminator type="{discriminator}"/>{text}</union>'

    def alias(self, name: str) -> str:
        text = f'<typedef name="{name}" {self.shape()}/>'
        self.others.append(name)
        return text

    def member(self, name: str, *, optional: bool = True) -> str:
        more = ' optional="true"' if optional and self.draw.random() < 0.2 else ""
        more += ' key="true"' if not more and self.draw.random() < 0.1 else ""
        return f'<member name="{name}" {self.shape()}{more}/>'

    def shape(self) -> str:
        named = [*self.structs, *self.enums, *self.others]
        kind = self.draw.choice(named) if named and self.draw.random() < 0.4 else self.draw.choice(PRIMITIVES)
        text = f'type="{kind}"'
        if kind == "string":
            text += self.draw.choice(("", ' stringMaxLength="3"', ' stringMaxLength="-1"'))
        text += self.draw.choice(("", "", "", ' sequenceMaxLength="2"', ' sequenceMaxLength="-1"', ' sequenceMaxLength="70000"'))  # fmt: skip
        return text + self.draw.choice(("", "", "", ' arrayDimensions="3"', ' arrayDimensions="2,1"'))


@pytest.mark.parametrize("seed", range(60))
def test_samples_of_drawn_types_come_back(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "types.xml"
    path.write_text(f"<types>{TypeDrawing(seed).types()}</types>")
    try:
        library = read_type_file(path)
    except InvalidFile:
        return
    for name, definition in library.definitions.items():
        if not isinstance(definition, Struct | Union):
            continue
        try:
            codec = library.codec(name)
        except Refused:
            continue
        for at in range(3):
            try:
                value = ValueDrawing(library.definitions, seed + at).value(name)
            except TooLarge:
                continue
            assert codec.decode(codec.encode(value)) == value, path.read_text()
