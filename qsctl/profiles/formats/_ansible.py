"""Ansible: tasks of `solace_client_profile` and its siblings of the cloud in a playbook, a role or a task list.

Decides: which tasks are profiles, and in which order they count. A module's `settings` are SEMP v2 attributes; a later
task of the same name changes the profile of an earlier one, `state: absent` removes it. Templates `{{ … }}` are
evaluated where the file states their values: variables of the play, of a block or of the task, items of a plain loop,
and the filters that convert or give a default. Any other one is unknown and named; a name made of its text replaces a
name. The YAML is composed and never constructed, so that no tag creates an object; the number of followed aliases is
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import yaml

from qsctl.declared.problems import refusal, shown
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.formats.selection import Selected
from qsctl.profiles.formats.semp_v2 import LEVELS, attributes_of
from qsctl.profiles.ranges import BY_SEMP_V2, DEFAULT_MESSAGE_VPN

MODULE: Final = "solace_client_profile"
MODULES: Final = (MODULE, "solace_cloud_client_profile", "solace_cloud_client_profile_v2")
_MODULES: Final = frozenset({*MODULES, *(f"solace.pubsub_plus.{each}" for each in MODULES)})
_TASK_LISTS: Final = frozenset({"tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"})
_NAMES: Final = ("name", "client_profile", "client_profile_name")
_LOOPS: Final = ("loop", "with_items", "with_list", "with_flattened")
_LOOP_PREFIX: Final = "with_"
BYTES_MAX: Final = 1024 * 1024
_NESTED_MAX: Final = 60
_EVENTS_MAX: Final = 200_000
_VISITED_MAX: Final = 50_000
_TEMPLATES_MAX: Final = 10
"""Templates that one value may go through."""
_NULL: Final = "tag:yaml.org,2002:null"
_STR: Final = "tag:yaml.org,2002:str"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEMPLATE: Final = re.compile(r"\{\{(.{0,500}?)\}\}", re.DOTALL)
_PATH: Final = re.compile(r"[A-Za-z_]\w{0,80}(?:\.\w{1,80}|\[(?:'[^'\]]{1,80}'|\"[^\"\]]{1,80}\"|\d{1,6})\]){0,10}")
_STEP: Final = re.compile(r"\.(\w+)|\[(?:'([^']*)'|\"([^\"]*)\"|(\d+))\]")
_DEFAULT: Final = re.compile(
    r"(?:default|d)\((.{0,200}?)(?:,\s*(?:true|false|boolean=true))?\)", re.IGNORECASE | re.DOTALL
)
_CONVERSIONS: Final = frozenset({"int", "string", "bool", "trim"})

Scope: TypeAlias = Mapping[str, Any]
"""Variables by name: nodes of YAML."""


class _Walk:
    """One walk through a document; it bounds the number of values, which aliases may repeat."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._visited = 0

    def pairs(self, node: Any) -> dict[str, Any]:
        """Return a mapping's keys with their nodes, merged ones (`<<`) included; empty for any other node."""
        found: dict[str, Any] = {}
        if not isinstance(node, yaml.MappingNode):
            return found
        merged: list[Any] = []
        for key, value in node.value:
            self.step(key)
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
        """Yield a sequence's items; nothing for any other node."""
        for each in node.value if isinstance(node, yaml.SequenceNode) else ():
            self.step(each)
            yield each

    def step(self, node: Any) -> None:
        """Count one visited value, also one that aliases or loops repeat.

        Raises:
            InvalidFile: there are too many.
        """
        self._visited += 1
        if self._visited > _VISITED_MAX:
            line = 0 if node.start_mark is None else node.start_mark.line + 1
            raise refusal(self._file, "the file has too many values or is nested too deeply", line=line,
                          allowed=f"at most {_VISITED_MAX} values, what aliases repeat included")  # fmt: skip


def read(text: str, drafts: Drafts) -> None:
    """Add the profiles of a playbook or a task list.

    Raises:
        InvalidFile: it is not YAML, or has too many values.
    """
    walk = _Walk(drafts.file)
    try:
        _check_bounds(text, drafts.file)
        for root in yaml.compose_all(text, Loader=_LOADER):
            tasks = _tasks_of(root, walk)
            for task, vpn, scope in tasks:
                _read_task(task, vpn, scope, drafts, walk)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise refusal(drafts.file, f"this is not YAML: {shown(error.problem or 'syntax')}", line=line) from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise refusal(drafts.file, "this is not YAML that can be read") from None


def _tasks_of(root: Any, walk: _Walk) -> Iterator[tuple[Any, Any, Scope]]:
    """Yield the tasks of a document, which is a list of plays or tasks, or a single play or task."""
    if isinstance(root, yaml.MappingNode):
        root = yaml.SequenceNode(_STR, [root], root.start_mark, root.end_mark)
    return _tasks(root, {}, {}, walk)


def _check_bounds(text: str, file: str) -> None:
    """Refuse a text that is too long or nested too deeply, before libyaml composes it by recursion on the C stack."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _NESTED_MAX or count > _EVENTS_MAX:
            allowed = f"at most {_NESTED_MAX} levels and {_EVENTS_MAX:,} values"
            line = 0 if event.start_mark is None else event.start_mark.line + 1
            raise refusal(file, "the file has too many values or is nested too deeply", line=line, allowed=allowed)


def _tasks(node: Any, vpns: Scope, scope: Scope, walk: _Walk) -> Iterator[tuple[Any, Any, Scope]]:
    """Yield the arguments of each task, the message VPN by `module_defaults`, and the task's variables.

    A task with a loop over items that the file states is yielded once for each of them.
    """
    for each in walk.items(node):
        pairs = walk.pairs(each)
        inside = dict(vpns)
        inner = {**scope, **walk.pairs(pairs.get("vars"))}
        for name, defaults in walk.pairs(pairs.get("module_defaults")).items():
            vpn = walk.pairs(defaults).get("msg_vpn") if name in _MODULES else None
            if vpn is not None:
                inside[name.rpartition(".")[2]] = vpn
        for name, value in pairs.items():
            if name in _MODULES:
                for item in _items(pairs, inner, walk):
                    yield value, inside.get(name.rpartition(".")[2]), {**inner, **item}
            elif name in _TASK_LISTS:
                yield from _tasks(value, inside, inner, walk)


def _items(pairs: Mapping[str, Any], scope: Scope, walk: _Walk) -> Iterator[Scope]:
    """Yield the variables of each item of a task's loop; one empty mapping without a loop, or for unknown items."""
    name = next((each for each in pairs if each == "loop" or each.startswith(_LOOP_PREFIX)), None)
    if name is None:
        yield {}
        return
    control = walk.pairs(pairs.get("loop_control"))
    variable = _text(control.get("loop_var")) or "item"
    looped = _resolved(pairs[name], scope, walk)
    if name not in _LOOPS or not isinstance(looped, yaml.SequenceNode):
        yield {}
        return
    for item in walk.items(looped):
        nested = walk.items(item) if isinstance(item, yaml.SequenceNode) and name != "loop" else [item]
        for each in nested:
            yield {variable: _resolved(each, scope, walk)}


def _resolved(node: Any, scope: Scope, walk: _Walk, depth: int = 0) -> Any:
    """Return the node that a template refers to; the node itself where it has no template, or an unknown one."""
    if not isinstance(node, yaml.ScalarNode) or "{{" not in str(node.value) or depth > _TEMPLATES_MAX:
        return node
    walk.step(node)
    text = str(node.value)
    whole = _TEMPLATE.fullmatch(text.strip())
    if whole is not None:
        found = _expression(whole[1], scope, walk, depth)
        return node if found is None else _placed(found, node)
    pieces: list[str] = []
    at = 0
    for match in _TEMPLATE.finditer(text):
        found = _expression(match[1], scope, walk, depth)
        if not isinstance(found, yaml.ScalarNode) or "{{" in str(found.value):
            return node
        pieces += [text[at : match.start()], str(found.value)]
        at = match.end()
    made = "".join([*pieces, text[at:]])
    return (
        node if len(made) > _TEXT_MAX or "{{" in made else yaml.ScalarNode(_STR, made, node.start_mark, node.end_mark)
    )


_TEXT_MAX: Final = 2000


def _placed(found: Any, node: Any) -> Any:
    """Return a scalar with the position of the template that was replaced by it."""
    if isinstance(found, yaml.ScalarNode):
        return yaml.ScalarNode(found.tag, found.value, node.start_mark, node.end_mark)
    return found


def _expression(text: str, scope: Scope, walk: _Walk, depth: int) -> Any:
    """Return the node of a plain expression (a variable, parts of one, filters); None for any other one."""
    path, *filters = [each.strip() for each in text.split("|")]
    node = None
    if _PATH.fullmatch(path) is not None:
        root = re.match(r"\w+", path)
        assert root is not None
        node = scope.get(root[0])
        for step in _STEP.finditer(path, root.end()):
            node = _part(_resolved(node, scope, walk, depth + 1), step, walk)
        node = _resolved(node, scope, walk, depth + 1)
    elif _literal(path) is not None:
        node = _literal(path)
    if isinstance(node, yaml.ScalarNode) and "{{" in str(node.value):
        node = None
    for each in filters:
        default = _DEFAULT.fullmatch(each)
        if default is not None and (node is None or (node.tag == _NULL or node.value == "")):
            node = _literal(default[1].strip()) or node
        elif default is None and each not in _CONVERSIONS:
            return None
    return node


def _part(node: Any, step: re.Match[str], walk: _Walk) -> Any:
    name = next(each for each in step.groups() if each is not None)
    if isinstance(node, yaml.MappingNode):
        return walk.pairs(node).get(name)
    if isinstance(node, yaml.SequenceNode) and name.isdecimal() and len(name) <= _INDEX_DIGITS:
        return node.value[int(name)] if int(name) < len(node.value) else None
    return None


_INDEX_DIGITS: Final = 6


def _literal(text: str) -> Any:
    """Return the node of a number, a truth value or a quoted text; None for anything else."""
    quoted = re.fullmatch(r"'([^'\\]*)'|\"([^\"\\]*)\"", text)
    if quoted is not None:
        return yaml.ScalarNode(_STR, quoted[1] if quoted[1] is not None else quoted[2])
    if re.fullmatch(r"\d{1,12}|true|false", text, re.IGNORECASE) is not None:
        return yaml.ScalarNode(_STR, text.lower())
    return None


def _read_task(task: Any, default_vpn: Any, scope: Scope, drafts: Drafts, walk: _Walk) -> None:
    line = task.start_mark.line + 1
    arguments = walk.pairs(_resolved(task, scope, walk))
    if not arguments:
        drafts.error("the task has no arguments that can be read", line=line, place=MODULE, allowed="a mapping")
        return
    given = next((arguments[each] for each in _NAMES if each in arguments), None)
    name, name_text = _named(given, scope, walk)
    vpn, vpn_text = _named(arguments.get("msg_vpn", default_vpn), scope, walk)
    if _text(_resolved(arguments.get("state"), scope, walk)) == "absent":
        drafts.forget(str(name), DEFAULT_MESSAGE_VPN if vpn is None else str(vpn))
        return
    draft = drafts.begin(name, vpn, line=line, again=True)
    if draft is None:
        return
    for field, text, stand_in in (("name", name_text, name), ("message_vpn", vpn_text, vpn)):
        if text:
            drafts.leave_unknown(draft, field, text, line=line, hint=f"The name {stand_in} stands for it.")
    _read_settings(arguments.get("settings"), scope, draft, drafts, walk)


def _named(node: Any, scope: Scope, walk: _Walk) -> tuple[object, str]:
    """Return a name and its template; the template of a known name is empty."""
    name = None if node is None else _scalar(_resolved(node, scope, walk))
    if isinstance(name, str) and "{{" in name:
        return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:32] or "template", name
    return name, ""


def _read_settings(node: Any, scope: Scope, draft: Draft, drafts: Drafts, walk: _Walk) -> None:
    settings = _resolved(node, scope, walk)
    if settings is None or settings.tag == _NULL:
        return
    line = settings.start_mark.line + 1
    if not isinstance(settings, yaml.MappingNode):
        text = _text(settings) or ""
        if "{{" in text:
            drafts.warn("the settings are not in the file", line=line, place=f"{draft.place}/settings", found=text,
                        hint="All of them are left out.")  # fmt: skip
            for setting in BY_SEMP_V2.values():
                if setting.field not in draft.values:
                    draft.unknown[setting.field] = shown(text)
            return
        drafts.error("settings is not a mapping", line=line, place=f"{draft.place}/settings", found=text,
                     allowed="a mapping of SEMP v2 attributes")  # fmt: skip
        return
    for key, value in walk.pairs(settings).items():
        _read_setting(key, value, scope, draft, drafts, walk)


def _read_setting(key: str, node: Any, scope: Scope, draft: Draft, drafts: Drafts, walk: _Walk) -> None:
    if key in {"clientProfileName", "msgVpnName"}:
        return  # the task's own arguments name both
    node = _resolved(node, scope, walk)
    line = node.start_mark.line + 1
    setting = BY_SEMP_V2.get(key)
    if setting is None:
        drafts.unknown(draft, key, BY_SEMP_V2, line=line, found=_text(node) or "")
        return
    raw: object = _scalar(node)
    if isinstance(node, yaml.MappingNode):
        levels = {name: _resolved(level, scope, walk) for name, level in walk.pairs(node).items()}
        raw = {LEVELS.get(name, name): _scalar(level) for name, level in levels.items()}
    templates = [each for each in (raw.values() if isinstance(raw, dict) else (raw,)) if isinstance(each, str)]
    template = next((each for each in templates if "{{" in each), None)
    if template is not None:
        drafts.leave_unknown(draft, setting.field, template, line=line, name=key)
        return
    drafts.put(draft, setting, raw, line=line, name=key, again=True)


def _scalar(node: Any) -> object:
    """Return the text of a scalar, None for null; of any other node its tag in angle brackets, which is no value."""
    if not isinstance(node, yaml.ScalarNode) or not str(node.tag).startswith("tag:yaml.org,2002:"):
        return f"<{node.tag}>"
    return None if node.tag == _NULL else str(node.value)


def _text(node: Any) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def write(profiles: Selected) -> str:
    """Return a list of tasks, one for each profile; the connection to the broker is left to `module_defaults`.

    Raises:
        InvalidFile: a name contains a template's syntax.
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
