"""A checklist of a move from RTI Queuing Service: each setting of its files, and each QoS of its applications.

Decides: what counts as the same. A setting is unless `validate` reports its line: then it is different, or not there. A
policy of an application is judged by what a queue's endpoints ask for [QS 2.4 and 2.5], see `_POLICIES`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from qsctl.cli.output.results import Block, Column, ListResult, Row, TableBlock, TextBlock, fields_of

if TYPE_CHECKING:
    from qsctl.config.problems import Problem

SAME, DIFFERENT, ABSENT = "same", "different", "not there"
_APPLICATION_TAGS: Final = ("participant_qos", "datawriter_qos", "datareader_qos")
_OWN_LIBRARY: Final = "of the application's own DDS library; a queue does not ask for it"

_POLICIES: Final[Mapping[str, tuple[Mapping[str, str], str, str]]] = {
    "reliability/kind": ({"RELIABLE_RELIABILITY_QOS": SAME}, DIFFERENT, "Set RELIABLE: a queue matches nothing else."),
    "reliability/acknowledgment_kind": (
        {"PROTOCOL_ACKNOWLEDGMENT_MODE": SAME},
        ABSENT,
        "Leave it out; answers are samples: qsctl help rti-shop, rows 4 and 5.",
    ),
    "history/kind": ({"KEEP_ALL_HISTORY_QOS": SAME}, DIFFERENT, "Set KEEP_ALL: else samples are replaced unsent."),
    "durability/kind": ({"VOLATILE_DURABILITY_QOS": SAME}, DIFFERENT, "A queue stores samples itself: set VOLATILE."),
    "ownership/kind": ({"SHARED_OWNERSHIP_QOS": SAME}, DIFFERENT, "Set SHARED: a queue matches nothing else."),
    "property": ({}, ABSENT, "Consume <topic>@<subscriber> by name: qsctl help rti-shop, row 6."),
    "partition": ({}, DIFFERENT, "Plain writers are in no partition; consumers have one of their own each."),
    "availability": ({}, ABSENT, "Durable subscriptions are the queue's: leave it out."),
    "transport_builtin": ({"UDPv4": SAME}, DIFFERENT, "UDP alone is spoken: let the mask hold UDPv4."),
    "discovery": ({}, DIFFERENT, "Let initial_peers hold the service's address; the service names peers by --peer."),
}
"""What of an application's QoS matters to a queue: verdicts of values, that of all others, and what to do then."""

_SHARED_SUBSCRIBER: Final = "dds.data_reader.shared_subscriber_name"


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A setting of a file, or a policy of an application: whether it is the same here, and what to do."""

    place: str
    setting: str
    value: str
    here: str
    to_do: str


@dataclass(frozen=True)
class Migration(ListResult):
    """The checklist; the exit status is 0, for it is a list and not a judgement."""

    steps: tuple[MigrationStep, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "place": "file and line",
        "setting": "the element, or the policy of an application's profile",
        "value": "what the file has",
        "here": "same, different or not there",
        "to_do": "what to do",
    }

    def rows(self) -> Sequence[Row]:
        """Return a row for each setting."""
        return [fields_of(each) for each in self.steps]

    def blocks(self) -> Sequence[Block]:
        """Return what is not the same, then a line that sums up."""
        columns = [
            Column("place", "Where"),
            Column("setting", "Setting"),
            Column("value", "Value"),
            Column("here", "Here"),
            Column("to_do", "To do"),
        ]
        counts = Counter(each.here for each in self.steps)
        verdict = ", ".join(f"{counts[kind]} {kind}" for kind in (SAME, DIFFERENT, ABSENT))
        rows = [row for row in self.rows() if row["here"] != SAME]
        text = TextBlock(f"{verdict} (-o json lists all of them)", "plain")
        return [TableBlock(columns, rows, keeps_columns=True), text] if rows else [text]


def migration_of(file: Path, profiles: Path | None) -> Migration:
    """Return the checklist of a configuration file, and of the applications' profiles.

    Raises:
        ConfigError: a file cannot be read, or is not valid: a valid file is needed to compare it.
    """
    steps = list(_of_service(file))
    if profiles is not None:
        steps += _of_applications(profiles)
    return Migration(tuple(steps))


def _document(path: Path) -> Any:
    from qsctl.config.files.document import parse_document, read_file

    return parse_document(read_file(path, str(path)), str(path), directory=path.resolve().parent)


def _of_service(file: Path) -> Iterator[MigrationStep]:
    from qsctl.config.load import judge_files
    from qsctl.config.problems import ConfigError, has_errors, path_of

    root = _document(file).root
    judged = judge_files(
        [file], variables={}, environment=os.environ, working_directory=Path.cwd(), default_files=False
    )
    if has_errors(judged.problems):
        raise ConfigError(judged.problems)
    reported: dict[int, list[Problem]] = {}
    for problem in judged.problems:
        reported.setdefault(problem.line, []).append(problem)
    for element in root.iter():
        if not isinstance(element.tag, str) or "queuing_service" not in {each.tag for each in element.iterancestors()}:
            continue
        place, path = f"{file}:{element.sourceline}", path_of(element).partition("]/")[2]
        found = reported.pop(element.sourceline, [])
        yield from (_step_of(problem, place, path) for problem in found)
        if not found and len(element) == 0 and path:
            yield MigrationStep(place, path, " ".join((element.text or "").split()), SAME, "")
    for problem in (each for problems in reported.values() for each in problems):
        yield _step_of(problem, f"{problem.file}:{problem.line}", problem.path)


def _step_of(problem: Problem, place: str, path: str) -> MigrationStep:
    from qsctl.config.problems import Severity

    here = ABSENT if problem.severity is Severity.UNSUPPORTED else DIFFERENT
    return MigrationStep(place, path, problem.found, here, problem.suggestion or problem.message)


def _of_applications(profiles: Path) -> Iterator[MigrationStep]:
    from qsctl.config.problems import path_of

    for entity in _document(profiles).root.iter(*_APPLICATION_TAGS):
        where = path_of(entity).partition("qos_profile[")[2].replace("]/", ": ")
        for policy in entity:
            if not isinstance(policy.tag, str):
                continue
            for element in policy.iter():
                if not isinstance(element.tag, str) or len(element):
                    continue
                names = [str(each.tag) for each in element.iterancestors()]
                name = "/".join([*reversed(names[: names.index(str(entity.tag))]), str(element.tag)])
                value = " ".join((element.text or "").split())
                here, to_do = _judge(name, str(policy.tag), value)
                yield MigrationStep(f"{profiles}:{element.sourceline}", f"{where}/{name}", value, here, to_do)


def _judge(name: str, policy: str, value: str) -> tuple[str, str]:
    """Return whether a policy of an application is the same here, and what to do."""
    if policy == "property" and value != _SHARED_SUBSCRIBER:
        return SAME, _OWN_LIBRARY
    known = _POLICIES.get(name) or _POLICIES.get(policy)
    if known is None:
        return SAME, _OWN_LIBRARY
    values, otherwise, to_do = known
    here = values.get(value.removeprefix("DDS_"), otherwise)
    return here, "" if here == SAME else to_do
