"""A checklist for a move from RTI Queuing Service: each setting of its files, and each QoS policy of its applications.

Decides which settings are the same here: those that `validate` does not report; the others are different or absent. A
setting with a warning that applies to RTI's service, too, such as that OFF loses samples in a power failure, is the
same, and the warning becomes advice.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from qsctl.cli.help._application_policies import (
    ABSENT,
    DEFAULTS,
    DIFFERENT,
    KINDS,
    OWN_LIBRARY,
    SAME,
    judge_base,
    judge_policy,
    shown_value,
)
from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block, TextBlock

if TYPE_CHECKING:
    from qsctl.declared.problems import Problem

_AS_THERE: Final = re.compile(
    r"/(filesystem/synchronization|replication_settings/(queue|configuration)_instances|(type|reply)_(name|type))$"
)
"""The settings whose warnings and notes apply to RTI's service, too [QS 3.3.1, 7.1.1 and Table 3.9]."""

_CHILD: Final = re.compile(r"<(\w+)>")


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A setting of a file or a policy of an application: whether it is the same here, and the advice."""

    place: Annotated[str, "file and line", Heading("Where")]
    setting: Annotated[str, "the element, or the policy of an application's profile", Heading("Setting")]
    value: Annotated[str, "what the file has", Heading("Value")]
    here: Annotated[str, "same, different or not there", Heading("Here")]
    to_do: Annotated[str, "what to do", Heading("To do")]


@dataclass(frozen=True)
class Migration(DeclaredRows, rows=MigrationStep, items="steps"):
    """The checklist; its exit status is always 0."""

    steps: tuple[MigrationStep, ...]

    def blocks(self) -> Sequence[Block]:
        """Return a table of the steps that differ or have advice, then a summary line."""
        counts = Counter(each.here for each in self.steps)
        verdict = ", ".join(f"{counts[kind]} {kind}" for kind in (SAME, DIFFERENT, ABSENT))
        shown = [each for each in self.steps if each.here != SAME or each.to_do not in {"", OWN_LIBRARY}]
        text = TextBlock(f"{verdict} (-o json lists all of them)", "plain")
        return [table_of(MigrationStep, shown, keeps_columns=True), text] if shown else [text]


def migration_of(file: Path | None, profiles: Path | None, variables: Mapping[str, str]) -> Migration:
    """Return the checklist of a service's configuration file and of applications' profiles; either may be None.

    Args:
        file: of the service; a file with QoS profiles alone is read as those of applications.
        profiles: of the applications.
        variables: values of `$(NAME)`, with precedence over the environment.

    Raises:
        InvalidFile: a file cannot be read, or is not valid: only a valid file can be compared.
        InvalidInput: a file has neither services nor QoS profiles.
    """
    steps: list[MigrationStep] = []
    if file is not None:
        steps += _of_service(file, variables) if _has(file, "queuing_service") else _of_applications(file, variables)
    if profiles is not None:
        steps += _of_applications(profiles, variables)
    return Migration(tuple(steps))


def _document(path: Path) -> Any:
    from qsctl.config.files.document import parse_document, read_file

    return parse_document(read_file(path, str(path)), str(path), directory=path.resolve().parent)


def _has(path: Path, tag: str) -> bool:
    return next(_document(path).root.iter(tag), None) is not None


def _of_service(file: Path, variables: Mapping[str, str]) -> Iterator[MigrationStep]:
    from qsctl.config.files.variables import substitute
    from qsctl.config.load import judge_files
    from qsctl.declared.problems import InvalidFile, has_errors, path_of

    document = _document(file)
    substitute(document, variables, os.environ)
    judged = judge_files(
        [file], variables=variables, environment=os.environ, working_directory=Path.cwd(), default_files=False
    )
    if has_errors(judged.problems):
        raise InvalidFile(judged.problems, "the configuration")
    reported: dict[tuple[int, str], list[Problem]] = {}
    for problem in judged.problems:
        reported.setdefault((problem.line, problem.path), []).append(problem)
    used: set[tuple[int, str]] = set()
    for service in document.root.iter("queuing_service"):
        for element, setting, value in _settings_of(service):
            inside = [(each.sourceline, path_of(each)) for each in element.iter() if isinstance(each.tag, str)]
            keys = [key for key in inside if key in reported]
            place = f"{file}:{element.sourceline}"
            if keys:
                yield from (_step_of(each, place, setting, value) for key in keys for each in reported[key])
            elif (outer := _around(element, setting, reported)) is not None:
                key, problem = outer
                keys = [key]
                yield _step_of(problem, place, setting, value)
            else:
                yield MigrationStep(place, setting, value, SAME, "")
            used.update(keys)
    for key, problems in reported.items():
        if key not in used:
            for problem in problems:
                step = _step_of(problem, f"{problem.file}:{problem.line}", problem.path, problem.found)
                # Bases of Connext that only set reliability and KEEP_ALL change nothing: a queue's endpoints have both.
                is_met = (judge_base(problem.found) or ("", ""))[0] == SAME
                yield replace(step, here=SAME, to_do="") if is_met else step


def _around(
    element: Any, setting: str, reported: Mapping[tuple[int, str], Sequence[Problem]]
) -> tuple[tuple[int, str], Problem] | None:
    """Return a problem reported for an enclosing element that concerns the setting: its policy, or its transport."""
    from qsctl.declared.problems import path_of

    steps = [element, *element.iterancestors()]
    tags = {str(each.tag) for each in steps}
    for around in steps[1:]:
        key = (around.sourceline, path_of(around))
        for problem in reported.get(key, ()):
            child = _CHILD.fullmatch(problem.found)
            if child is not None and child[1] in tags and "is not used" in problem.message:
                return key, problem
            if problem.found.startswith("dds.transport.") and "property[dds.transport." in setting:
                return key, problem
    return None


def _settings_of(root: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield the settings in an element: each with its element, its path from there, and its value.

    A property is one setting, and so is a duration; an element without text that has a base has the base as its value.
    """

    def walk(element: Any, path: str) -> Iterator[tuple[Any, str, str]]:
        children = [each for each in element if isinstance(each.tag, str)]
        tags = {each.tag for each in children}
        if element.tag == "element" and "name" in tags:
            texts = {str(each.tag): _text(each) for each in children}
            holder = path.removesuffix("/value/element")
            yield element, f"{holder}[{texts['name']}]", texts.get("value", "")
        elif tags and tags <= {"sec", "nanosec"}:
            yield element, path, _duration_text({str(each.tag): _text(each) for each in children})
        elif not children:
            yield element, path, _text(element) or str(element.get("base_name") or "")
        else:
            for child in children:
                name = child.get("name")
                step = f"{child.tag}[{name}]" if name and child.tag != "element" else str(child.tag)
                yield from walk(child, f"{path}/{step}" if path else step)

    yield from walk(root, "")


def _text(element: Any) -> str:
    return " ".join((element.text or "").split())


def _duration_text(texts: Mapping[str, str]) -> str:
    """Return a duration as `INFINITE`, `30s` or `1s 500000000ns`."""
    words = {tag: text.removeprefix("DDS_").removeprefix("DURATION_") for tag, text in texts.items()}
    if words.get("sec", "").startswith("INFINITE") or words.get("sec") == str(2**31 - 1):
        return "INFINITE"
    numbers = {tag: "0" if word.startswith("ZERO") else word for tag, word in words.items()}
    if numbers.get("nanosec", "0") == "0":
        return f"{numbers.get('sec', '0')}s"
    return f"{numbers.get('sec', '0')}s {numbers['nanosec']}ns"


def _step_of(problem: Problem, place: str, setting: str, value: str) -> MigrationStep:
    from qsctl.declared.problems import Severity

    here = ABSENT if problem.severity is Severity.UNSUPPORTED else DIFFERENT
    if here == DIFFERENT and _AS_THERE.search(problem.path):
        here = SAME
    message = problem.message
    to_do = f"{message[:1].upper()}{message[1:]}." + (f" {problem.suggestion}" if problem.suggestion else "")
    return MigrationStep(place, setting, value or problem.found, here, to_do)


def _of_applications(profiles: Path, variables: Mapping[str, str]) -> Iterator[MigrationStep]:
    from qsctl.config.files.variables import substitute
    from qsctl.declared.problems import InvalidFile, has_errors
    from qsctl.errors import InvalidInput

    document = _document(profiles)
    if has_errors(unresolved := substitute(document, variables, os.environ)):
        raise InvalidFile(unresolved)
    found = list(document.root.iter("qos_profile"))
    if not found:
        raise InvalidInput(
            f"{profiles}: no <qos_profile> in <{document.root.tag}>, and no <queuing_service>",
            remedy="Name a file of RTI Queuing Service, or the QoS profiles of its applications.",
        )
    for profile in found:
        yield from _of_profile(profile, profiles)


def _of_profile(profile: Any, file: Path) -> Iterator[MigrationStep]:
    name = str(profile.get("name") or "")
    entities = [each for each in profile if each.tag in KINDS]
    given: set[tuple[str, str]] = set()
    for element in (profile, *entities):
        where = name if element is profile else f"{name}: {element.tag}"
        base = str(element.get("base_name") or "")
        if (verdict := judge_base(base)) is not None:
            yield MigrationStep(f"{file}:{element.sourceline}", f"{where}/base_name", base, *verdict)
    for entity in entities:
        kind = KINDS[str(entity.tag)]
        for element, path, value in _settings_of(entity):
            if path:
                here, to_do = judge_policy(kind, path, value)
                given.add((kind, path))
                setting = f"{name}: {entity.tag}/{path}"
                yield MigrationStep(f"{file}:{element.sourceline}", setting, shown_value(path, value), here, to_do)
    without_base = [each for each in entities if not each.get("base_name") and not profile.get("base_name")]
    for entity in without_base:
        kind = KINDS[str(entity.tag)]
        for path, default in DEFAULTS.get(kind, ()):
            if (kind, path) not in given:
                given.add((kind, path))
                here, to_do = judge_policy(kind, path, default)
                setting = f"{name}: {entity.tag}/{path}"
                yield MigrationStep(f"{file}:{entity.sourceline}", setting, f"{default}, the default", here, to_do)
