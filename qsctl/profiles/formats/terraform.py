"""Terraform: resources `solacebroker_msg_vpn_client_profile`, and links of DMR clusters with their prefixed arguments.

Decides: what of HCL is read. The library parses; here only literal values count, for references and expressions have
their value elsewhere. A setting given by one is an error; a name given by one is replaced, with a warning.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from qsctl.profiles.client_profile import ClientProfile, Threshold
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.problems import refusal
from qsctl.profiles.ranges import SETTINGS, value_of
from qsctl.profiles.setting import Value, ValueKind

RESOURCE: Final = "solacebroker_msg_vpn_client_profile"
_LINK: Final = "solacebroker_dmr_cluster_link"
_LINK_PREFIX: Final = "client_profile_"
_BY_NAME: Final = {setting.terraform: setting for setting in SETTINGS}
_META: Final = frozenset({"depends_on", "count", "for_each", "provider", "lifecycle", "provisioner", "connection"})
BYTES_MAX: Final = 512 * 1024
_NESTED_MAX: Final = 100
_WORDS_MAX: Final = 100_000
"""About 250 profiles with all their settings; the parser takes some seconds for them."""
_WORD = re.compile(r"\w+|[^\w\s]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[nrt\"\\])")

Tree: TypeAlias = Any
"""A tree of lark: `data` names the rule, `children` are trees and tokens; a token is a str with a `line`."""


class _Expression:
    """A value that is not in the file."""


_EXPRESSION: Final = _Expression()
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a Terraform file.

    Raises:
        ProfileError: it is not HCL, or nested too deeply.
    """
    import hcl2
    from lark.exceptions import LarkError, UnexpectedInput

    _check_bounds(text, drafts.file)
    try:
        tree = hcl2.parses_to_tree(text if text.endswith("\n") else text + "\n")
    except UnexpectedInput as error:
        line = max(0, int(error.line or 0))
        token = str(getattr(error, "token", None) or getattr(error, "char", ""))
        raise refusal(drafts.file, "this is not HCL", line=line, found=token[:40].strip()) from None
    except (LarkError, RecursionError):
        raise refusal(drafts.file, "this is not HCL that can be read") from None
    for block in _blocks(tree):
        labels = [
            _literal(each) for each in block.children[:-1] if getattr(each, "data", "") in {"identifier", "string"}
        ]
        if labels[:1] == ["resource"] and len(labels) == 3 and labels[1] in {RESOURCE, _LINK}:
            _read_resource(block, str(labels[2]), drafts, is_link=labels[1] == _LINK)


def _check_bounds(text: str, file: str) -> None:
    """Refuse too much and too deep before the parser sees it; words and brackets in texts count, too."""
    if sum(1 for _ in _WORD.finditer(text)) > _WORDS_MAX:
        raise refusal(file, "there is too much in this file", allowed=f"at most {_WORDS_MAX:,} words and signs")
    depth = 0
    for match in re.finditer(r"[\[({\])}]", text):
        depth = depth + 1 if match[0] in "[({" else max(0, depth - 1)
        if depth > _NESTED_MAX:
            line = text.count("\n", 0, match.start()) + 1
            raise refusal(file, "it is nested too deeply", line=line, allowed=f"at most {_NESTED_MAX} levels")


def _blocks(tree: Tree) -> Iterator[Tree]:
    body = next((each for each in tree.children if getattr(each, "data", "") == "body"), None)
    for each in body.children if body is not None else ():
        if getattr(each, "data", "") == "block":
            yield each


def _line(tree: Tree) -> int:
    """Return the line of the first token; 0 without one."""
    stack = [tree]
    while stack:
        at = stack.pop()
        if hasattr(at, "children"):
            stack.extend(reversed(at.children))
        elif getattr(at, "line", None):
            return int(at.line)
    return 0


def _read_resource(block: Tree, label: str, drafts: Drafts, *, is_link: bool) -> None:
    arguments = list(_arguments(block))
    given = {name: (value, line) for name, value, line in arguments}
    name_argument = "remote_node_name" if is_link else "client_profile_name"
    place = f"resource[{label}]"
    name = _name_of(given.get(name_argument, (_EXPRESSION, _line(block))), name_argument, label, place, drafts)
    vpn = _name_of(given.get("msg_vpn_name", (None, 0)), "msg_vpn_name", None, place, drafts)
    draft = drafts.begin(re.sub(r"[^A-Za-z0-9_-]", "_", str(name))[:32] if is_link else name, vpn, line=_line(block))
    if draft is None:
        return
    for name, value, line in arguments:
        argument = name.removeprefix(_LINK_PREFIX) if is_link else name
        setting = _BY_NAME.get(argument)
        if is_link and not name.startswith((f"{_LINK_PREFIX}queue_", f"{_LINK_PREFIX}tcp_")):
            continue
        if setting is not None:
            _put(drafts, draft, name, value, line)
        elif name not in _META and name not in {"client_profile_name", "msg_vpn_name"}:
            drafts.unknown(draft, name, _BY_NAME, line=line, found="" if value is _EXPRESSION else value)


def _put(drafts: Drafts, draft: Draft, name: str, value: object, line: int) -> None:
    setting = _BY_NAME.get(name) or _BY_NAME[name.removeprefix(_LINK_PREFIX)]
    if value is _EXPRESSION or (isinstance(value, dict) and _EXPRESSION in value.values()):
        drafts.error(f"{name} is an expression", line=line, place=f"{draft.place}/{name}", allowed=setting.allowed,
                     hint="Only literal values are read: replace it by its value.")  # fmt: skip
    elif value is not None:  # Terraform's null is as if it were not there
        drafts.put(draft, setting, value, line=line, name=name)


def _name_of(found: tuple[object, int], argument: str, instead: str | None, place: str, drafts: Drafts) -> object:
    value, line = found
    if value is not _EXPRESSION:
        return value
    shown = instead or "default"
    drafts.warn(f"{argument} is not a literal", line=line, place=place, hint=f"The name {shown} stands for it.")
    return instead


def _arguments(block: Tree) -> Iterator[tuple[str, object, int]]:
    """Yield each argument with its value and line; a nested block of levels counts as an argument that is an object."""
    body = next(each for each in block.children if getattr(each, "data", "") == "body")
    for each in body.children:
        rule = getattr(each, "data", "")
        if rule == "attribute":
            yield str(_literal(each.children[0])), _literal(each.children[-1]), _line(each)
        elif rule == "block":
            yield str(_literal(each.children[0])), {name: value for name, value, _ in _arguments(each)}, _line(each)


def _literal(tree: Tree) -> object:
    """Return the value of a literal, `_EXPRESSION` of anything else; `tree` is not nested deeper than `_NESTED_MAX`."""
    children = [each for each in getattr(tree, "children", ()) if getattr(each, "data", "") != "new_line_or_comment"]
    match getattr(tree, "data", ""):
        case "identifier":
            return str(children[0])
        case "expr_term" if len(children) == 1:
            # Some versions of the parser take the words of literals as identifiers.
            is_word = getattr(children[0], "data", "") == "identifier"
            return _WORDS.get(str(_literal(children[0])), _EXPRESSION) if is_word else _literal(children[0])
        case "int_lit":
            return "".join(map(str, children))
        case "literal_value":
            return _WORDS.get(str(children[0]), _EXPRESSION)
        case "string":
            return _string(children)
        case "object":
            return _object(children)
        case "unary_op" if len(children) == 2 and str(children[0]) == "-":
            number = _literal(children[1])
            return f"-{number}" if isinstance(number, str) else _EXPRESSION
        case _:
            return _EXPRESSION


def _string(children: list[Tree]) -> object:
    parts: list[str] = []
    for each in children:
        for part in getattr(each, "children", ()):
            if hasattr(part, "children"):
                return _EXPRESSION
            parts.append(_ESCAPE.sub(_unescaped, str(part).replace("$${", "${").replace("%%{", "%{")))
    return "".join(parts)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "uU":
        number = int(code[1:], 16)
        return chr(number) if number <= sys.maxunicode else found[0]
    return {"n": "\n", "r": "\r", "t": "\t"}.get(code, code)


def _object(children: list[Tree]) -> object:
    found: dict[str, object] = {}
    for each in children:
        if getattr(each, "data", "") == "object_elem":
            key, value = each.children[0], each.children[-1]
            term = key.children[0] if getattr(key, "children", ()) else key
            inner = term.children[0] if getattr(term, "data", "") == "expr_term" and term.children else term
            found[str(_literal(inner))] = _literal(value)
    return found


def write(profiles: Selected) -> str:
    """Return a resource for each profile; a limit that the platform decides is left out."""
    return "\n".join(_resource(profile, fields) for profile, fields in profiles)


def _resource(profile: ClientProfile, fields: frozenset[str]) -> str:
    label = re.sub(r"[^A-Za-z0-9_-]", "_", profile.name)
    label = label if label[0].isalpha() or label[0] == "_" else f"_{label}"
    rows = [("msg_vpn_name", _quoted(profile.message_vpn)), ("client_profile_name", _quoted(profile.name))]
    for setting in SETTINGS:
        value = value_of(profile, setting)
        if setting.field in fields and value is not None:
            rows.append((setting.terraform, _text(value, setting.kind)))
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:<{width}} = {text}" for name, text in rows]
    return "\n".join([f'resource "{RESOURCE}" "{label}" {{', *lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    # The parser here takes `$${` only where a brace closes it; Terraform takes both.
    escaped = escaped.replace("${", "\\u0024{").replace("%{", "\\u0025{")
    return f'"{escaped}"'


def _text(value: Value, kind: ValueKind) -> str:
    if isinstance(value, Threshold):
        unit = "percent" if value.is_percent else "value"
        return f"{{ set_{unit} = {value.set_at}, clear_{unit} = {value.clear_at} }}"
    return str(value).lower() if kind in {ValueKind.BOOLEAN, ValueKind.INTEGER} else _quoted(str(value))
