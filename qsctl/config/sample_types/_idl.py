"""Types in IDL, as `<types>` in XML: each element on the line of its definition, so that problems name that line.

Decides: the accepted part of IDL 4.2: modules, structs with bases, enumerations, unions, bit masks, typedefs,
constants, forward declarations, `#include "…"`, annotations in front (`@key`, `@final`, …) and Connext's behind
(`//@key`). The reader of `<types>`, which reads the result, checks names, bounds and circles [QS 3.3.1]. The wheel of
Cyclone DDS has the library of its IDL compiler without the compiler, and its parser runs in C on whatever is in the
text; this one is a lexer and a descent over bounded text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, NoReturn
from xml.sax.saxutils import quoteattr

from qsctl.declared.problems import InvalidFile, refusal

IDL_BYTES_MAX: Final = 1024 * 1024
NESTING_MAX: Final = 64
"""Modules inside modules, collections inside collections."""

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/)
    |(?P<behind>//@[ \t]*(?P<word>[A-Za-z_-]+)[ \t]*(?P<value>[^\r\n]*))
    |(?P<comment>//[^\r\n]*)
    |(?P<directive>\#[^\r\n]*)
    |(?P<text>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
    |(?P<name>(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)
    |(?P<number>[0-9][0-9A-Za-z_.]*)
    |(?P<sign>::|<<|[-+*/%&|^~@{}()\[\]<>,;:=.])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_INCLUDE: Final = re.compile(r'#\s*include\s*["<]([^">]+)[">]')
_HARMLESS: Final = re.compile(r"#\s*(pragma\b|ifndef\s+\w+\s*$|define\s+\w+\s*$|endif\b|line\b|\d)")
_PRIMITIVES: Final = {
    "boolean": "boolean", "octet": "octet", "char": "char", "wchar": "wchar", "short": "int16", "float": "float32",
    "double": "float64", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16", "int32": "int32",
    "uint32": "uint32", "int64": "int64", "uint64": "uint64",
}  # fmt: skip
_EXTENSIBILITY: Final = {
    "final": "final", "appendable": "appendable", "mutable": "mutable", "final_extensibility": "final",
    "extensible_extensibility": "appendable", "appendable_extensibility": "appendable",
    "mutable_extensibility": "mutable",
}  # fmt: skip
_EXPRESSION_END: Final = frozenset({";", ",", "]", ">", "}", ":", ")"})


class _Token(NamedTuple):
    kind: str
    text: str
    line: int
    value: str = ""


class _Shape(NamedTuple):
    """The shape of a member, as attributes of its element."""

    type: str
    string_bound: str = ""
    sequence_bound: str = ""

    def attributes(self, dimensions: Sequence[str]) -> dict[str, str]:
        primitive = self.type in _PRIMITIVES.values() or self.type in {"string", "wstring", "float128"}
        found = {"type": self.type} if primitive else {"type": "nonBasic", "nonBasicTypeName": self.type}
        if self.string_bound:
            found["stringMaxLength"] = self.string_bound
        if self.sequence_bound:
            found["sequenceMaxLength"] = self.sequence_bound
        if dimensions:
            found["arrayDimensions"] = ",".join(dimensions)
        return found


def types_of_idl(data: bytes, name: str) -> bytes:
    """Return IDL as a document of `<types>`; `name` is what problems call it.

    Raises:
        InvalidFile: it is too large, not UTF-8, or not IDL of the kind that is read; names the line.
    """
    if len(data) > IDL_BYTES_MAX:
        raise _refused(name, 0, "the IDL is too large", f"{len(data)} bytes", f"at most {IDL_BYTES_MAX} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(name, 0, "the IDL is not UTF-8", str(error.reason)) from None
    tokens = list(_tokens(text, name))
    if not tokens:
        raise _refused(name, 0, "the file is empty", allowed="types in IDL")
    return _IdlReader(name, tokens).document()


def _refused(name: str, line: int, message: str, found: str = "", allowed: str = "") -> InvalidFile:
    return refusal(name, message, line=line, found=found, allowed=allowed)


def _tokens(text: str, name: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _refused(name, line, "this is not IDL", text[at : at + 20], "names, numbers and signs of IDL")
        kind = str(match.lastgroup)
        if match["behind"] is not None:
            yield _Token("behind", match["word"].lower(), line, match["value"].strip())
        elif kind not in {"space", "comment"}:
            yield _Token(kind, match[0], line)
        line += match[0].count("\n")
        at = match.end()


class _IdlReader:
    """A recursive-descent reader of IDL tokens, which writes each definition as XML while it reads."""

    def __init__(self, name: str, tokens: list[_Token]) -> None:
        self._name = name
        self._tokens = tokens
        self._at = 0
        self._line = 1
        self._written: list[str] = []

    def document(self) -> bytes:
        """Return the document."""
        self._write("<types>", 1)
        while self._at < len(self._tokens):
            self._definition(0)
        self._write("</types>", self._line)
        return "".join(self._written).encode()

    # Tokens.

    def _peek(self) -> _Token:
        """Return the next token; annotations that follow a definition are skipped."""
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "behind":
            self._at += 1
        if self._at < len(self._tokens):
            return self._tokens[self._at]
        return _Token("end", "the end of the file", self._tokens[-1].line if self._tokens else 1)

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, text: str) -> _Token:
        token = self._next()
        if token.text != text:
            self._wrong(token, f"{text!r}")
        return token

    def _skip(self, text: str) -> bool:
        if self._peek().text != text or self._peek().kind in {"text", "end"}:
            return False
        self._at += 1
        return True

    def _identifier(self) -> _Token:
        token = self._next()
        if token.kind != "name" or "::" in token.text:
            self._wrong(token, "a name")
        return token

    def _wrong(self, token: _Token, allowed: str) -> NoReturn:
        raise _refused(self._name, token.line, "this is not IDL that is read here", token.text, allowed)

    def _behind(self, line: int) -> dict[str, str]:
        """Return the annotations after the definition that ended on this line."""
        found: dict[str, str] = {}
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind != "behind" or token.line != line:
                break
            found[token.text] = token.value
            self._at += 1
        return found

    # Elements.

    def _write(self, text: str, line: int) -> None:
        """Write text on this line of the document; on the current line if that is already behind it."""
        if line > self._line:
            self._written.append("\n" * (line - self._line))
            self._line = line
        self._written.append(text)

    def _element(self, tag: str, attributes: dict[str, str], line: int, *, is_open: bool = False) -> None:
        opened = _open_tag(tag, attributes)
        self._write(opened if is_open else f"{opened[:-1]}/>", line)

    # Definitions.

    def _definition(self, depth: int) -> None:
        token = self._peek()
        if token.kind == "end":
            return
        if token.kind == "directive":
            self._directive(self._next())
            return
        annotations = self._annotations()
        token = self._next()
        if depth > NESTING_MAX:
            raise _refused(self._name, token.line, "the modules are nested too deeply", allowed=f"{NESTING_MAX} levels")
        match token.text:
            case ";":
                pass
            case "module":
                self._module(token, depth)
            case "struct":
                self._struct(token, annotations)
            case "enum" | "bitmask":
                self._listing(token, annotations)
            case "union":
                self._union(token, annotations)
            case "typedef":
                for name, attributes in self._declarators(self._shape(0)):
                    self._element("typedef", {"name": name.text, **attributes}, name.line)
                self._expect(";")
            case "const":
                shape, name = self._shape(0), self._identifier()
                self._expect("=")
                value = self._expression()
                self._element("const", {"name": name.text, "type": shape.type, "value": value}, name.line)
                self._expect(";")
            case _:
                self._wrong(token, "module, struct, enum, union, bitmask, typedef or const")

    def _directive(self, token: _Token) -> None:
        included = _INCLUDE.match(token.text)
        if included:
            self._element("include", {"file": included[1]}, token.line)
        elif not _HARMLESS.match(token.text):
            raise _refused(
                self._name,
                token.line,
                "this preprocessor directive is not supported",
                token.text,
                "#include, #pragma, include guards",
            )

    def _module(self, token: _Token, depth: int) -> None:
        name = self._identifier()
        self._expect("{")
        self._element("module", {"name": name.text}, token.line, is_open=True)
        while not self._skip("}"):
            if self._peek().kind == "end":
                self._wrong(self._peek(), "'}'")
            self._definition(depth + 1)
        self._write("</module>", self._line)

    def _struct(self, token: _Token, annotations: dict[str, str]) -> None:
        name = self._identifier()
        if self._skip(";"):
            return  # a forward declaration
        attributes = {"name": name.text}
        if self._skip(":"):
            attributes["baseType"] = self._next().text
        self._expect("{")
        self._element("struct", attributes, token.line, is_open=True)
        position = len(self._written) - 1
        while not self._skip("}"):
            self._member()
        attributes |= self._type_attributes(annotations, self._end_of_type())
        self._written[position] = _open_tag("struct", attributes)
        self._write("</struct>", self._line)

    def _end_of_type(self) -> dict[str, str]:
        end = self._expect(";")
        return self._behind(end.line)

    def _type_attributes(self, before: dict[str, str], behind: dict[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        words = [*before, before.get("extensibility", ""), behind.get("extensibility", "")]
        for word in words:
            if chosen := _EXTENSIBILITY.get(word.strip().lower()):
                found["extensibility"] = chosen
        if before.get("autoid", "").strip().lower() == "hash":
            found["autoid"] = "hash"
        return found

    def _member(self) -> None:
        annotations = self._annotations()
        shape = self._shape(0)
        declared = list(self._declarators(shape))
        end = self._expect(";")
        annotations |= self._behind(end.line)
        for name, attributes in declared:
            self._element("member", {"name": name.text, **attributes, **_member_attributes(annotations)}, name.line)

    def _listing(self, token: _Token, annotations: dict[str, str]) -> None:
        is_mask = token.text == "bitmask"
        name = self._identifier()
        attributes = {"name": name.text}
        if "bit_bound" in annotations:
            attributes["bitBound"] = annotations["bit_bound"]
        self._element(token.text, attributes, token.line, is_open=True)
        self._expect("{")
        while not self._skip("}"):
            own = self._annotations()
            literal = self._identifier()
            found = {"name": literal.text}
            value = own.get("value") or own.get("position") or ""
            if self._skip("="):
                value = self._expression()
            if value:
                found["position" if is_mask else "value"] = value
            self._element("flag" if is_mask else "enumerator", found, literal.line)
            if not self._skip(","):
                self._expect("}")
                break
        self._end_of_type()
        self._write(f"</{token.text}>", self._line)

    def _union(self, token: _Token, annotations: dict[str, str]) -> None:
        name = self._identifier()
        if self._skip(";"):
            return
        self._expect("switch")
        self._expect("(")
        key = "key" in self._annotations()
        discriminator = self._shape(0).attributes(())
        self._expect(")")
        self._expect("{")
        self._element("union", {"name": name.text}, token.line, is_open=True)
        position = len(self._written) - 1
        self._element("discriminator", {**discriminator, **({"key": "true"} if key else {})}, token.line)
        while not self._skip("}"):
            self._case()
        given = {"name": name.text, **self._type_attributes(annotations, self._end_of_type())}
        self._written[position] = (
            "<union" + "".join(f" {each}={quoteattr(value)}" for each, value in given.items()) + ">"
        )
        self._write("</union>", self._line)

    def _case(self) -> None:
        labels: list[str] = []
        first = self._peek()
        while True:
            if self._skip("case"):
                labels.append(self._expression())
            elif self._skip("default"):
                labels.append("default")
            else:
                break
            self._expect(":")
        if not labels:
            self._wrong(first, "case or default")
        self._element("case", {}, first.line, is_open=True)
        for label in labels:
            value = {"TRUE": "true", "FALSE": "false"}.get(label, label)
            self._element("caseDiscriminator", {"value": value}, first.line)
        self._member()
        self._write("</case>", self._line)

    # Parts.

    def _annotations(self) -> dict[str, str]:
        """Return the annotations before a definition, by name: the parameters of each, as text."""
        found: dict[str, str] = {}
        while self._skip("@"):
            name = self._next()
            if name.kind != "name":
                self._wrong(name, "the name of an annotation")
            parameters: list[str] = []
            if self._skip("("):
                depth = 1
                while depth:
                    token = self._next()
                    if token.kind == "end":
                        self._wrong(token, "')'")
                    depth += (token.text == "(") - (token.text == ")")
                    parameters.append(token.text)
                parameters.pop()
                if parameters[:2] == ["value", "="]:
                    parameters = parameters[2:]
            found[name.text] = " ".join(parameters)
        return found

    def _shape(self, depth: int) -> _Shape:
        token = self._next()
        if token.kind != "name" or depth > NESTING_MAX:
            self._wrong(token, "a type")
        kind = token.text
        if kind in {"string", "wstring"}:
            bound = "-1"
            if self._skip("<"):
                bound = self._expression()
                self._expect(">")
            return _Shape(kind, bound)
        if kind == "sequence":
            self._expect("<")
            inner = self._shape(depth + 1)
            if inner.sequence_bound:
                raise _refused(self._name, token.line, "a sequence of sequences", allowed="a typedef for the inner one")
            bound = self._expression() if self._skip(",") else "-1"
            self._expect(">")
            return inner._replace(sequence_bound=bound)
        if kind == "unsigned":
            word = self._next()
            if word.text == "long":
                return _Shape("uint64" if self._skip("long") else "uint32")
            if word.text != "short":
                self._wrong(word, "unsigned short, unsigned long or unsigned long long")
            return _Shape("uint16")
        if kind == "long":
            if self._skip("long"):
                return _Shape("int64")
            return _Shape("float128" if self._skip("double") else "int32")
        if kind in {"map", "any", "fixed", "Object"}:
            self._wrong(token, "a primitive, a string, a sequence or a type")
        return _Shape(_PRIMITIVES.get(kind, kind))

    def _declarators(self, shape: _Shape) -> Iterator[tuple[_Token, dict[str, str]]]:
        while True:
            name = self._identifier()
            dimensions: list[str] = []
            while self._skip("["):
                dimensions.append(self._expression())
                self._expect("]")
            yield name, shape.attributes(dimensions)
            if not self._skip(","):
                return

    def _expression(self) -> str:
        """Return the text of an expression up to its end; the reader of `<types>` evaluates it."""
        parts: list[str] = []
        depth = 0
        while True:
            token = self._peek()
            if token.kind == "end" or (not depth and token.text in _EXPRESSION_END):
                break
            depth += (token.text == "(") - (token.text == ")")
            if token.kind not in {"text", "name", "number", "sign"}:
                self._wrong(token, "a number or a constant")
            parts.append(token.text)
            self._at += 1
        if not parts:
            self._wrong(self._peek(), "a number or a constant")
        return " ".join(parts)


def _open_tag(tag: str, attributes: dict[str, str]) -> str:
    return f"<{tag}{''.join(f' {name}={quoteattr(value)}' for name, value in attributes.items())}>"


def _member_attributes(annotations: dict[str, str]) -> dict[str, str]:
    lowered = {name.lower(): value for name, value in annotations.items()}
    found = {
        attribute: "true"
        for name, attribute in (("key", "key"), ("optional", "optional"), ("must_understand", "mustUnderstand"))
        if name in lowered and lowered[name].strip().lower() not in {"false", "0"}
    }
    if lowered.get("id"):
        found["id"] = lowered["id"]
    if "hashid" in lowered:
        found["hashid"] = lowered["hashid"].strip('"')
    if lowered.get("default"):
        found["default"] = lowered["default"].strip('"')
    return found
