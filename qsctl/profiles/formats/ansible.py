"""Ansible: tasks of the module `solace_client_profile` (collection solace.pubsub_plus) in a playbook or a task list.

Decides: which tasks are profiles. The module's `settings` are SEMP v2 attributes. Templates `{{ … }}` have their value
elsewhere: as a setting one is an error, as the message VPN a warning, and the VPN is then `default`. The YAML is
composed and never constructed, so that no tag makes anything; aliases are followed within a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from qsctl.config.problems import shown
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.formats.semp_v2 import LEVELS, attributes_of
from qsctl.profiles.problems import refusal
from qsctl.profiles.ranges import BY_SEMP_V2

MODULE: Final = "solace_client_profile"
_MODULES: Final = frozenset({MODULE, f"solace.pubsub_plus.{MODULE}"})
_TASK_LISTS: Final = frozenset({"tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"})
_NAMES: Final = ("name", "client_profile", "client_profile_name")
BYTES_MAX: Final = 1024 * 1024
_NESTED_MAX: Final = 60
_EVENTS_MAX: Final = 200_000
_VISITED_MAX: Final = 50_000
_NULL: Final = "tag:yaml.org,2002:null"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Walk:
    """One walk through a document: it follows aliases, and so has a bound of its own."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._visited = 0

    def pairs(self, node: Any) -> dict[str, Any]:
        """Return a mapping's keys with their nodes, merged ones (`<<`) included; empty of anything else."""
        found: dict[str, Any] = {}
        if not isinstance(node, yaml.MappingNode):
            return found
        merged: list[Any] = []
        for key, value in node.value:
            self._step(key)
            if key.tag == "tag:yaml.org,2002:merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif isinstance(key, yaml.ScalarNode):
                if key.value in found:
                    line = key.start_mark.line + 1
                    raise refusal(self._file, f"a second {shown(key.value)} in one mapping", line=line)
                found[key.value] = value
        for each in merged:
            if each is node:
                continue
            for name, value in self.pairs(each).items():
                found.setdefault(name, value)
        return found

    def items(self, node: Any) -> Iterator[Any]:
        """Yield a sequence's items; none of anything else."""
        for each in node.value if isinstance(node, yaml.SequenceNode) else ():
            self._step(each)
            yield each

    def _step(self, node: Any) -> None:
        self._visited += 1
        if self._visited > _VISITED_MAX:
            raise refusal(self._file, "there is too much in this file", line=node.start_mark.line + 1,
                          allowed=f"at most {_VISITED_MAX} values, what aliases repeat included")  # fmt: skip


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a playbook or a task list.

    Raises:
        ProfileError: it is not YAML, or too much.
    """
    walk = _Walk(drafts.file)
    try:
        _check_bounds(text, drafts.file)
        for root in yaml.compose_all(text, Loader=_LOADER):
            for task, vpn in _tasks(root, None, walk):
                _read_task(task, vpn, drafts, walk)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise refusal(drafts.file, f"this is not YAML: {shown(error.problem or 'syntax')}", line=line) from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise refusal(drafts.file, "this is not YAML that can be read") from None


def _check_bounds(text: str, file: str) -> None:
    """Refuse too much and too deep before it is composed: libyaml composes by recursion on the C stack."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _NESTED_MAX or count > _EVENTS_MAX:
            allowed = f"at most {_NESTED_MAX} levels and {_EVENTS_MAX:,} values"
            line = 0 if event.start_mark is None else event.start_mark.line + 1
            raise refusal(file, "there is too much in this file", line=line, allowed=allowed)


def _tasks(node: Any, vpn: Any, walk: _Walk) -> Iterator[tuple[Any, Any]]:
    """Yield each task's arguments with the message VPN that `module_defaults` gives."""
    for each in walk.items(node):
        pairs = walk.pairs(each)
        inside = vpn
        for name, defaults in walk.pairs(pairs.get("module_defaults")).items():
            if name in _MODULES:
                inside = walk.pairs(defaults).get("msg_vpn", inside)
        for name, value in pairs.items():
            if name in _MODULES:
                yield value, inside
            elif name in _TASK_LISTS:
                yield from _tasks(value, inside, walk)


def _read_task(task: Any, default_vpn: Any, drafts: Drafts, walk: _Walk) -> None:
    line = task.start_mark.line + 1
    arguments = walk.pairs(task)
    if not arguments:
        drafts.error("the task has no arguments that can be read", line=line, place=MODULE, allowed="a mapping")
        return
    name = next((_scalar(arguments[each]) for each in _NAMES if each in arguments), None)
    if _text(arguments.get("state")) == "absent":
        return
    vpn = _message_vpn(arguments.get("msg_vpn", default_vpn), name, drafts)
    draft = drafts.begin(name, vpn, line=line)
    if draft is None:
        return
    settings = arguments.get("settings")
    if settings is None or settings.tag == _NULL:
        return
    if not isinstance(settings, yaml.MappingNode):
        drafts.error("settings is no mapping", line=settings.start_mark.line + 1, place=f"{draft.place}/settings",
                     found=_text(settings) or "", allowed="a mapping of SEMP v2 attributes")  # fmt: skip
        return
    for key, value in walk.pairs(settings).items():
        _read_setting(key, value, draft, drafts, walk)


def _read_setting(key: str, node: Any, draft: Draft, drafts: Drafts, walk: _Walk) -> None:
    line = node.start_mark.line + 1
    setting = BY_SEMP_V2.get(key)
    if setting is None:
        drafts.unknown(draft, key, BY_SEMP_V2, line=line, found=_text(node) or "")
        return
    raw: object = _scalar(node)
    if isinstance(node, yaml.MappingNode):
        raw = {LEVELS.get(name, name): _scalar(level) for name, level in walk.pairs(node).items()}
    if isinstance(raw, str) and "{{" in raw:
        hint = "Only literal values are read: replace it by its value."
        place = f"{draft.place}/{key}"
        drafts.error(f"{key} is a template", line=line, place=place, found=raw, allowed=setting.allowed, hint=hint)
        return
    drafts.put(draft, setting, raw, line=line, name=key)


def _message_vpn(node: Any, name: object, drafts: Drafts) -> object:
    vpn = None if node is None else _scalar(node)
    if isinstance(vpn, str) and "{{" in vpn:
        drafts.warn("msg_vpn is a template", line=node.start_mark.line + 1, place=f"client-profile[{name}]", found=vpn,
                    hint="The name default stands for it.")  # fmt: skip
        return None
    return vpn


def _scalar(node: Any) -> object:
    """Return the text of a scalar, None of null; the node itself, which is no value, of anything else."""
    if not isinstance(node, yaml.ScalarNode) or not str(node.tag).startswith("tag:yaml.org,2002:"):
        return f"<{node.tag}>"
    return None if node.tag == _NULL else str(node.value)


def _text(node: Any) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def write(profiles: Selected) -> str:
    """Return a list of tasks, one a profile; the connection to the broker is for `module_defaults`.

    Raises:
        ProfileError: a name in it reads as a template.
    """
    tasks = [_task(profile, fields) for profile, fields in profiles]
    return str(yaml.safe_dump(tasks, sort_keys=False, allow_unicode=True, width=10_000))


def _check_template(profile: ClientProfile, text: object) -> None:
    if isinstance(text, str) and "{{" in text:
        raise refusal(f"client profile {profile.name}", f"{text!r} reads as a template in a playbook",
                      suggestion="Choose another format.")  # fmt: skip


def _task(profile: ClientProfile, fields: frozenset[str]) -> dict[str, object]:
    settings = attributes_of(profile, fields)
    for text in (profile.message_vpn, *settings.values()):
        _check_template(profile, text)
    arguments = {"name": profile.name, "msg_vpn": profile.message_vpn, "settings": settings, "state": "present"}
    return {"name": f"client profile {profile.name}", f"solace.pubsub_plus.{MODULE}": arguments}
