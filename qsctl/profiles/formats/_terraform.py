"""Terraform: resources `solacebroker_msg_vpn_client_profile`, and links of DMR clusters with their prefixed arguments.

Decides: which resources are profiles, and the replacements of values that are not in the file. Values are evaluated as
far as the file states them (`_hcl.py`); a setting with any other value is unknown and named; a name with one is
replaced by the text of its expression. `for_each` and `count` give one profile for each instance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from qsctl.declared.problems import shown
from qsctl.profiles.client_profile import ClientProfile, Threshold
from qsctl.profiles.formats._hcl import HclBlock, HclValues, NotKnown, items_of, parse_hcl
from qsctl.profiles.formats._terraform_json import read_json
from qsctl.profiles.formats._terraform_resource import LINK, META, RESOURCE, add_resource
from qsctl.profiles.formats.draft import PROFILES_MAX, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.ranges import SETTINGS, value_of
from qsctl.profiles.setting import Value, ValueKind

BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a state or a plan; of HCL less is read, see `_hcl.py`."""


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a Terraform file, in HCL or JSON.

    Raises:
        InvalidFile: it is not HCL or JSON, too long, or nested too deeply.
    """
    if text.lstrip()[:1] == "{":
        read_json(text, drafts)
        return
    blocks = parse_hcl(text, drafts.file)
    values = HclValues(blocks, drafts.file)
    for block in blocks:
        if block.words[:1] == ("resource",) and len(block.words) == _WORDS and block.words[1] in {RESOURCE, LINK}:
            for scope, suffix in _instances(block, values, drafts):
                _read_resource(block, scope, f"{block.words[2]}{suffix}", values, drafts)


_WORDS: Final = 3
"""Of a resource: the word, its type and its label."""


def _instances(block: HclBlock, values: HclValues, drafts: Drafts) -> Iterator[tuple[Mapping[str, object], str]]:
    """Yield the scope of each instance and its key; where the instances are unknown, one with unknown values."""
    place = f"resource[{block.words[2]}]"
    if "for_each" in block.arguments:
        tree, line = block.arguments["for_each"]
        value = values.value(tree, {})
        pairs = items_of(value)
        if pairs is None:
            found = value.text if isinstance(value, NotKnown) else shown(str(value)[:100])
            drafts.warn("the value of for_each is not in the file", line=line, place=place, found=found,
                        hint="One profile stands for all of its instances.")  # fmt: skip
            yield {}, ""
            return
        for key, item in pairs[: PROFILES_MAX + 1]:
            each = item if isinstance(value, list) else key
            yield {"each": {"key": each, "value": item}}, f"_{each}"
    elif "count" in block.arguments:
        tree, line = block.arguments["count"]
        count = values.value(tree, {})
        if not isinstance(count, int) or isinstance(count, bool):
            found = count.text if isinstance(count, NotKnown) else shown(str(count)[:100])
            drafts.warn("the value of count is not in the file", line=line, place=place, found=found,
                        hint="One profile stands for all of its instances.")  # fmt: skip
            yield {}, ""
            return
        for index in range(min(count, PROFILES_MAX + 1)):
            yield {"count": {"index": index}}, f"_{index}" if count > 1 else ""
    else:
        yield {}, ""


def _read_resource(block: HclBlock, scope: Mapping[str, object], label: str, values: HclValues, drafts: Drafts) -> None:
    given = {name: (values.value(tree, scope), line) for name, (tree, line) in block.arguments.items()
             if name not in META}  # fmt: skip
    for nested in block.blocks:  # levels in a block of their own count as an argument that is an object
        levels = {name: values.value(tree, scope) for name, (tree, _) in nested.arguments.items()}
        given.setdefault(nested.words[0], (levels, nested.line))
    for name, line in block.repeated:
        drafts.error(f"{name} occurs twice in one block", line=line, place=f"resource[{label}]/{name}", allowed="once")
    add_resource(given, drafts, is_link=block.words[1] == LINK, label=label, line=block.line)


def write(profiles: Selected) -> str:
    """Return one resource for each profile; a limit that the platform decides is left out."""
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
