"""Terraform's JSON: a state file, `terraform show -json` of a state or a plan, and configuration in `*.tf.json`.

Decides: where the resources are. Values of a plan that are known only after it is applied are unknown, and so are texts
with a template in a configuration. Problems name a resource by its address: lines of generated JSON do not help.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from qsctl.declared.problems import refusal
from qsctl.profiles.formats._hcl import NotKnown
from qsctl.profiles.formats._terraform_resource import LINK, RESOURCE, add_resource
from qsctl.profiles.formats.draft import Drafts

_TYPES: Final = frozenset({RESOURCE, LINK})
_MODULES_MAX: Final = 40
"""Largest depth of nested modules."""
_AFTER: Final = NotKnown("(known after apply)")


def read_json(text: str, drafts: Drafts) -> None:
    """Add the profiles of a JSON text of Terraform.

    Raises:
        InvalidFile: it is not JSON, or nested too deeply.
    """
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        raise refusal(drafts.file, f"this is not JSON: {error.msg}", line=error.lineno) from None
    except (ValueError, RecursionError):
        raise refusal(drafts.file, "this is not valid JSON") from None
    for kind, address, values in _resources(root if isinstance(root, dict) else {}):
        given = {name: (value, 0) for name, value in values.items()}
        label = address.rpartition(".")[2]
        add_resource(given, drafts, is_link=kind == LINK, label=label, line=0)


def _resources(root: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield the type, the address and the arguments of each resource."""
    for key in ("planned_values", "values"):
        if isinstance(root.get(key), dict):
            unknown = _known_after(root)
            for kind, address, values in _of_module(root[key].get("root_module"), 0):
                later = {name: _AFTER for name, flag in unknown.get(address, {}).items() if flag is True}
                yield kind, address, {**values, **later}
            return
    if isinstance(root.get("resources"), list):
        yield from _of_state(root["resources"])
    yield from _of_configuration(root.get("resource"))


def _of_module(module: object, depth: int) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    if not isinstance(module, dict) or depth > _MODULES_MAX:
        return
    for each in _dicts(module.get("resources")):
        if each.get("type") in _TYPES and isinstance(each.get("values"), dict):
            yield str(each["type"]), str(each.get("address") or each.get("name") or ""), each["values"]
    for each in _dicts(module.get("child_modules")):
        yield from _of_module(each, depth + 1)


def _known_after(root: Mapping[str, Any]) -> Mapping[str, Mapping[str, object]]:
    """Return, by address, the arguments that a plan knows only after it is applied."""
    found = {}
    for each in _dicts(root.get("resource_changes")):
        change = each.get("change")
        unknown = change.get("after_unknown") if isinstance(change, dict) else None
        if isinstance(unknown, dict) and isinstance(each.get("address"), str):
            found[each["address"]] = unknown
    return found


def _of_state(resources: object) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    for each in _dicts(resources):
        if each.get("type") not in _TYPES:
            continue
        for instance in _dicts(each.get("instances")):
            attributes = instance.get("attributes")
            if isinstance(attributes, dict):
                index = instance.get("index_key")
                name = f"{each.get('name')}" + ("" if index is None else f"[{index}]")
                yield str(each["type"]), f"{each['type']}.{name}", attributes


def _of_configuration(resources: object) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    for kind in sorted(_TYPES):
        labels = resources.get(kind) if isinstance(resources, dict) else None
        for label, body in labels.items() if isinstance(labels, dict) else ():
            for each in _dicts(body if isinstance(body, list) else [body]):
                yield kind, f"{kind}.{label}", {name: _template(value) for name, value in each.items()}


def _template(value: object) -> object:
    return NotKnown(value) if isinstance(value, str) and ("${" in value or "%{" in value) else value


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each
