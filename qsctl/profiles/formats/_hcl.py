"""HCL as Terraform has it: blocks and the values of their arguments, as far as the file itself states them.

A library parses. Here `var` has its default, `local` its value, `each` and `count` those of the instance, and a
reference to another resource of the file the argument that it names; templates, conditions, comparisons, plain
arithmetic, `for` and a few functions are evaluated. Any other expression is `NotKnown` and keeps its text, and so is a
value that depends on it. No expression raises an error: the number of steps is bounded, and so are the length of a text
and of a list.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from qsctl.declared.problems import refusal

WORDS_MAX: Final = 100_000
"""About 250 profiles with all their settings; the parser takes some seconds for them."""
NESTED_MAX: Final = 100
_TEXT_MAX: Final = 512 * 1024
_STEPS_MAX: Final = 200_000
_ITEMS_MAX: Final = 2000
_CHARACTERS_MAX: Final = 2000
_SHOWN_CHARACTERS: Final = 80
_REFERENCES_MAX: Final = 20
"""References that one value may go through."""
_DIGITS_MAX: Final = 15
_WORD = re.compile(r"\w+|[^\w\s]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[nrt\"\\])")
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}

Tree: TypeAlias = Any
"""A tree of lark: `data` names the rule, `children` are trees and tokens; a token is a str with a `line`."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A value that the file does not state; `text` is the expression in its place."""

    text: str


@dataclass(slots=True)
class HclBlock:
    """A block: its words and labels (`resource`, the type, the name), its arguments and the blocks inside it."""

    words: tuple[str, ...]
    line: int
    arguments: dict[str, tuple[Tree, int]]
    blocks: list[HclBlock]
    repeated: list[tuple[str, int]] = field(default_factory=list)
    """Arguments that occur more than once, with the line of each further one."""


def parse_hcl(text: str, file: str) -> list[HclBlock]:
    """Return the blocks of a file.

    Raises:
        InvalidFile: it is not HCL, too long, or nested too deeply.
    """
    import hcl2
    from lark.exceptions import LarkError, UnexpectedInput

    _check_bounds(text, file)
    try:
        tree = hcl2.parses_to_tree(text if text.endswith("\n") else text + "\n")
    except UnexpectedInput as error:
        line = max(0, int(error.line or 0))
        token = str(getattr(error, "token", None) or getattr(error, "char", ""))
        raise refusal(file, "this is not HCL", line=line, found=token[:40].strip()) from None
    except (LarkError, RecursionError):
        raise refusal(file, "this is not HCL that can be read") from None
    return [_block(each) for each in _below(_body(tree), "block")]


def _check_bounds(text: str, file: str) -> None:
    """Refuse a text with too many words or too deep brackets before it is parsed; those in strings count, too."""
    if len(text) > _TEXT_MAX:
        allowed = f"at most {_TEXT_MAX:,} characters of HCL"
        raise refusal(file, "the file is too large", found=f"{len(text):,} characters", allowed=allowed)
    if sum(1 for _ in itertools.islice(_WORD.finditer(text), WORDS_MAX + 1)) > WORDS_MAX:
        raise refusal(file, "there is too much in this file", allowed=f"at most {WORDS_MAX:,} words and signs")
    depth = 0
    for match in re.finditer(r"[\[({\])}]", text):
        depth = depth + 1 if match[0] in "[({" else max(0, depth - 1)
        if depth > NESTED_MAX:
            line = text.count("\n", 0, match.start()) + 1
            raise refusal(file, "it is nested too deeply", line=line, allowed=f"at most {NESTED_MAX} levels")


def _rule(tree: Tree) -> str:
    return str(getattr(tree, "data", ""))


def _children(tree: Tree) -> list[Tree]:
    """Return the parts of a rule, without line breaks and comments."""
    return [each for each in getattr(tree, "children", ()) if _rule(each) != "new_line_or_comment"]


def _body(tree: Tree) -> Tree:
    return next((each for each in _children(tree) if _rule(each) == "body"), None)


def _below(tree: Tree, rule: str) -> list[Tree]:
    return [each for each in _children(tree) if _rule(each) == rule]


def _block(tree: Tree) -> HclBlock:
    words = tuple(_plain(each) for each in _children(tree) if _rule(each) in {"identifier", "string"})
    body = _body(tree)
    block = HclBlock(words, _line(tree), {}, [_block(each) for each in _below(body, "block")])
    for each in _below(body, "attribute"):
        name, line = str(_children(each)[0].children[0]), _line(each)
        if name in block.arguments:
            block.repeated.append((name, line))
        else:
            block.arguments[name] = _children(each)[-1], line
    return block


def _plain(tree: Tree) -> str:
    """Return an identifier, or the text of a string without templates."""
    if _rule(tree) == "identifier":
        return str(tree.children[0])
    return "".join(str(token) for token in _tokens(tree)).strip('"')


def _tokens(tree: Tree) -> Iterator[str]:
    stack = [tree]
    while stack:
        at = stack.pop()
        if hasattr(at, "children"):
            stack.extend(reversed(at.children))
        else:
            yield str(at)


def _line(tree: Tree) -> int:
    """Return the line of the first token; 0 if the tree has none."""
    stack = [tree]
    while stack:
        at = stack.pop()
        if hasattr(at, "children"):
            stack.extend(reversed(at.children))
        elif getattr(at, "line", None):
            return int(at.line)
    return 0


def text_of(tree: Tree) -> str:
    """Return the text of an expression on one line, cut to a bounded length."""
    text = ""
    for token in _tokens(tree):
        text += f" {token}" if token[:1].isalnum() and text[-1:].isalnum() else token
        if len(text) > 2 * _SHOWN_CHARACTERS:
            break
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


class HclValues:
    """The values of one file's expressions.

    Args:
        blocks: of the file.
        file: the file's name in problems.
    """

    def __init__(self, blocks: list[HclBlock], file: str) -> None:
        self._file = file
        self._steps = 0
        self._references = 0
        self._cache: dict[tuple[str, ...], object] = {}
        self._places: dict[tuple[str, ...], Tree] = {}
        self.resources: dict[tuple[str, str], HclBlock] = {}
        for block in blocks:
            match block.words:
                case ("variable", name):
                    self._places["var", name] = block.arguments.get("default", (None, 0))[0]
                case ("locals",):
                    for name, (tree, _) in block.arguments.items():
                        self._places["local", name] = tree
                case ("resource", kind, label):
                    self.resources.setdefault((kind, label), block)
                case _:
                    pass

    def value(self, tree: Tree, scope: Mapping[str, object]) -> object:
        """Return the value of an expression: text, a truth value, None, a number, a list, a dict; or `NotKnown`.

        Args:
            tree: the expression.
            scope: the values of `each`, `count` and the names of a `for`.

        Raises:
            InvalidFile: there is too much to evaluate.
        """
        self._steps += 1
        if self._steps > _STEPS_MAX:
            raise refusal(self._file, "the file has too many values", line=_line(tree),
                          allowed=f"at most {_STEPS_MAX:,} values, what expressions repeat included")  # fmt: skip
        found = self._value(tree, scope)
        if isinstance(found, str) and len(found) > _CHARACTERS_MAX:
            return NotKnown(text_of(tree))
        return NotKnown(text_of(tree)) if found is _UNKNOWN else found

    def _value(self, tree: Tree, scope: Mapping[str, object]) -> object:
        children = _children(tree)
        match _rule(tree):
            case "expr_term":
                inner = [each for each in children if hasattr(each, "children")]
                return self.value(inner[0], scope) if len(inner) == 1 else _UNKNOWN
            case "identifier":
                word = str(children[0])
                return _WORDS[word] if word in _WORDS else scope.get(word, _UNKNOWN)
            case "literal_value":
                return _WORDS.get(str(children[0]), _UNKNOWN)
            case "int_lit":
                digits = "".join(map(str, children))
                return int(digits) if digits.isascii() and len(digits) <= _DIGITS_MAX else digits
            case "float_lit":
                return "".join(map(str, children))
            case "string":
                return self._text(children, scope)
            case "object":
                return self._object(children, scope)
            case "tuple":
                return self._list(children, scope)
            case "get_attr_expr_term" | "index_expr_term":
                return self._reference(tree, scope)
            case "conditional":
                return self._conditional(children, scope)
            case "binary_op":
                return self._binary(children, scope)
            case "unary_op":
                return self._unary(children, scope)
            case "function_call":
                return self._call(children, scope)
            case "for_tuple_expr" | "for_object_expr":
                return self._for(tree, scope)
            case _:
                return _UNKNOWN

    def _text(self, parts: list[Tree], scope: Mapping[str, object]) -> object:
        pieces: list[str] = []
        for part in parts:
            for piece in _children(part):
                if _rule(piece) == "interpolation":
                    inner = [each for each in _children(piece) if hasattr(each, "children")]
                    value = self.value(inner[0], scope) if len(inner) == 1 else _UNKNOWN
                    if len(parts) == _ONLY_PART and not isinstance(value, str | int):
                        return value  # "${local.x}" is the value itself
                    if not isinstance(value, str | int) or isinstance(value, bool):
                        return _UNKNOWN
                    pieces.append(str(value))
                elif hasattr(piece, "children"):
                    return _UNKNOWN
                else:
                    pieces.append(_ESCAPE.sub(_unescaped, str(piece).replace("$${", "${").replace("%%{", "%{")))
        return "".join(pieces)

    def _object(self, children: list[Tree], scope: Mapping[str, object]) -> object:
        found: dict[str, object] = {}
        for each in children:
            if _rule(each) == "object_elem":
                parts = [part for part in _children(each) if hasattr(part, "children")]
                key = self._key(parts[0], scope)
                if not isinstance(key, str) or len(found) >= _ITEMS_MAX:
                    return _UNKNOWN
                found[key] = self.value(parts[-1], scope)
        return found

    def _key(self, tree: Tree, scope: Mapping[str, object]) -> object:
        """Return an object's key; a bare word is a text."""
        while _rule(tree) in {"object_elem_key", "expr_term"} and len(_children(tree)) == 1:
            tree = _children(tree)[0]
        if _rule(tree) == "identifier":
            return str(tree.children[0])
        key = self.value(tree, scope) if hasattr(tree, "children") else str(tree)
        return str(key) if isinstance(key, int) and not isinstance(key, bool) else key

    def _list(self, children: list[Tree], scope: Mapping[str, object]) -> object:
        items = [each for each in children if hasattr(each, "children")]
        return [self.value(each, scope) for each in items] if len(items) <= _ITEMS_MAX else _UNKNOWN

    def _reference(self, tree: Tree, scope: Mapping[str, object]) -> object:
        steps: list[object] = []
        at = tree
        while _rule(at) in {"get_attr_expr_term", "index_expr_term", "expr_term"}:
            inner = [each for each in _children(at) if hasattr(each, "children")]
            if _rule(at) == "expr_term":
                if len(inner) != 1:
                    return _UNKNOWN
                at = inner[0]
                continue
            step = inner[-1]
            named = [each for each in _children(step) if hasattr(each, "children")]
            if len(inner) != _PAIR or len(named) != 1:
                return _UNKNOWN
            is_name = _rule(step) == "get_attr" and _rule(named[0]) == "identifier"
            steps.append(str(named[0].children[0]) if is_name else self.value(named[0], scope))
            at = inner[0]
        if _rule(at) != "identifier":
            return _walked(self.value(at, scope), steps[::-1])
        return self._named(str(at.children[0]), steps[::-1], scope)

    def _named(self, root: str, steps: list[object], scope: Mapping[str, object]) -> object:
        if root in scope:
            return _walked(scope[root], steps)
        if not steps or not isinstance(steps[0], str):
            return _UNKNOWN
        if root in {"var", "local"}:
            return _walked(self._stated((root, steps[0])), steps[1:])
        block = self.resources.get((root, steps[0]))
        rest = [step for step in steps[1:] if isinstance(step, str)]  # without the index of an instance
        if block is None or len(rest) != 1 or rest[0] not in block.arguments:
            return _UNKNOWN
        return self._stated((root, steps[0], rest[0]), block.arguments[rest[0]][0])

    def _stated(self, place: tuple[str, ...], tree: Tree = None) -> object:
        """Return the value of a local, a variable or an argument; one that depends on itself is `NotKnown`."""
        if place in self._cache:
            return self._cache[place]
        tree = self._places.get(place) if tree is None else tree
        if tree is None or self._references >= _REFERENCES_MAX:
            return _UNKNOWN
        self._cache[place] = _UNKNOWN
        self._references += 1
        self._cache[place] = self.value(tree, {})
        self._references -= 1
        return self._cache[place]

    def _conditional(self, children: list[Tree], scope: Mapping[str, object]) -> object:
        parts = [each for each in children if hasattr(each, "children")]
        if len(parts) != _TRIPLE:
            return _UNKNOWN
        condition = self.value(parts[0], scope)
        return self.value(parts[1] if condition else parts[2], scope) if isinstance(condition, bool) else _UNKNOWN

    def _binary(self, children: list[Tree], scope: Mapping[str, object]) -> object:
        parts = [each for each in children if hasattr(each, "children")]
        if len(parts) != _PAIR or _rule(parts[1]) != "binary_term":
            return _UNKNOWN
        operator, right = [each for each in _children(parts[1]) if hasattr(each, "children")][:_PAIR]
        return _operated("".join(_tokens(operator)).strip(), self.value(parts[0], scope), self.value(right, scope))

    def _unary(self, children: list[Tree], scope: Mapping[str, object]) -> object:
        if len(children) != _PAIR:
            return _UNKNOWN
        value = self.value(children[1], scope)
        if str(children[0]) == "!":
            return not value if isinstance(value, bool) else _UNKNOWN
        if isinstance(value, str):
            return f"-{value}"
        return -value if isinstance(value, int) and not isinstance(value, bool) else _UNKNOWN

    def _call(self, children: list[Tree], scope: Mapping[str, object]) -> object:
        """Return the result of a call of one of the supported functions."""
        name = str(children[0].children[0])
        rest = next((each for each in children if _rule(each) == "arguments"), None)
        given = [self.value(each, scope) for each in _children(rest) if hasattr(each, "children")] if rest else []
        match name, given:
            case ("toset" | "tolist" | "tomap" | "tostring" | "tonumber" | "tobool" | "nonsensitive", [one]):
                return one
            case ("try" | "coalesce", _):
                return next((each for each in given if not isinstance(each, NotKnown) and each is not None), _UNKNOWN)
            case ("lookup", [dict() as table, str() as key, *default]):
                return table.get(key, default[0] if default else _UNKNOWN)
            case ("merge", [*tables]) if all(isinstance(each, dict) for each in tables):
                return {key: value for table in tables for key, value in table.items()}  # type: ignore[attr-defined]
            case ("concat", [*lists]) if all(isinstance(each, list) for each in lists):
                return [item for each in lists for item in each][:_ITEMS_MAX]  # type: ignore[attr-defined]
            case ("lower", [str() as text]):
                return text.lower()
            case ("upper", [str() as text]):
                return text.upper()
            case ("length", [list() | dict() | str() as one]):
                return len(one)
            case ("keys", [dict() as table]):
                return sorted(table)
            case ("values", [dict() as table]):
                return [table[key] for key in sorted(table)]
            case _:
                return _UNKNOWN

    def _for(self, tree: Tree, scope: Mapping[str, object]) -> object:
        children = [each for each in _children(tree) if hasattr(each, "children")]
        intro = next((each for each in children if _rule(each) == "for_intro"), None)
        condition = next((each for each in children if _rule(each) == "for_cond"), None)
        results = [each for each in children if _rule(each) not in {"for_intro", "for_cond"}]
        wanted = 1 if _rule(tree) == "for_tuple_expr" else _PAIR
        parts = [each for each in _children(intro) if hasattr(each, "children")] if intro is not None else []
        names = [str(each.children[0]) for each in parts[:-1] if _rule(each) == "identifier"]
        if len(results) != wanted or len(names) != len(parts) - 1 or not names:
            return _UNKNOWN
        pairs = items_of(self.value(parts[-1], scope))
        if pairs is None:
            return _UNKNOWN
        made: list[tuple[object, object]] = []
        for key, value in pairs:
            inner = {**scope, names[-1]: value, **({names[0]: key} if len(names) == _PAIR else {})}
            if condition is not None:
                test = [each for each in _children(condition) if hasattr(each, "children")]
                chosen = self.value(test[-1], inner) if test else _UNKNOWN
                if not isinstance(chosen, bool):
                    return _UNKNOWN
                if not chosen:
                    continue
            found = [self.value(each, inner) for each in results]
            made.append((found[0], found[-1]))
        if wanted == 1:
            return [value for _, value in made]
        if not all(isinstance(key, str | int) for key, _ in made):
            return _UNKNOWN
        return {str(key): value for key, value in made}


_UNKNOWN: Final = object()
"""Inside the evaluation: `value` makes it `NotKnown` with the text of the expression."""
_PAIR: Final = 2
_TRIPLE: Final = 3
_ONLY_PART: Final = 3
"""The parts of a string with one piece: quote, piece, quote."""


def items_of(value: object) -> list[tuple[object, object]] | None:
    """Return the pairs of a list, by number, or of a dict; None for anything else."""
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else None


def _walked(value: object, steps: list[object]) -> object:
    for step in steps:
        if isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return _UNKNOWN
    return _UNKNOWN if isinstance(value, NotKnown) else value


def _operated(operator: str, left: object, right: object) -> object:
    if any(each is _UNKNOWN or isinstance(each, NotKnown | list | dict) for each in (left, right)):
        return _UNKNOWN
    match operator:
        case "==":
            return left == right and isinstance(left, bool) == isinstance(right, bool)
        case "!=":
            return left != right or isinstance(left, bool) != isinstance(right, bool)
        case "&&" if isinstance(left, bool) and isinstance(right, bool):
            return left and right
        case "||" if isinstance(left, bool) and isinstance(right, bool):
            return left or right
    if isinstance(left, bool) or isinstance(right, bool) or not (isinstance(left, int) and isinstance(right, int)):
        return _UNKNOWN
    if max(abs(left), abs(right)) >= 10**_DIGITS_MAX:
        return _UNKNOWN
    match operator:
        case ">":
            return left > right
        case "<":
            return left < right
        case ">=":
            return left >= right
        case "<=":
            return left <= right
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return _UNKNOWN


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "uU":
        number = int(code[1:], 16)
        return chr(number) if number <= sys.maxunicode else found[0]
    return {"n": "\n", "r": "\r", "t": "\t"}.get(code, code)
