"""The reader of a scenario's XML file: parsed safely, variables replaced, checked, every problem reported in one error.

Shares the hardened parser, the variables and the problems with the service's configuration. `forms/build.py` reads the
elements, and `rules` checks the rules across them; if neither finds a problem, the file is validated against the schema
(`schemas/qsctl_simulation.xsd`; a schema that the file itself names is never fetched).
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import msgspec
from lxml import etree

from qsctl.config.files.document import Document, DocumentLimits, parse_document, read_file, text_of
from qsctl.config.files.variables import substitute
from qsctl.core.settings import ServiceSettings
from qsctl.declared.problems import InvalidFile, Problem, error_at
from qsctl.errors import UNREADABLE, NotFound
from qsctl.eventlog.run_folder import SERVICE_FILE
from qsctl.shipped import shipped
from qsctl.sim.scenario.forms.build import ScenarioReading, build, elements_of
from qsctl.sim.scenario.forms.elements import SCENARIO
from qsctl.sim.scenario.parts.replay import AnotherRecording, Replay
from qsctl.sim.scenario.places import places_of
from qsctl.sim.scenario.rules.scenario import breaches_of
from qsctl.sim.scenario.scenario import Model, Scenario, TraceArrivals, Traffic, WorkloadProducer

SCHEMA: Final = "schemas/qsctl_simulation.xsd"
READY_FOLDER: Final = "fixtures/scenarios"
DEFAULT_READY: Final = "burst"
"""The ready scenario of `qsctl simulate` without an argument."""

_START_BYTES: Final = 400
"""Bytes at the beginning of a ready file that contain its root element."""

LIMITS: Final = DocumentLimits(size_bytes=16 * 1024 * 1024, elements=500_000)


def read_scenario(
    path: Path, variables: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Scenario:
    """Read a scenario file.

    Args:
        path: the file. Files that it names are relative to its folder.
        variables: values for `$(NAME)`; they override those of the environment [QS 3.4].
        environment: environment variables; None: those of this process.

    Raises:
        InvalidFile: with every problem: file, line, element path, value found, values allowed.
    """
    return _read(path, dict(variables or {}), dict(os.environ) if environment is None else dict(environment))


def ready_scenarios() -> dict[str, Path]:
    """Return the scenarios that come with qsctl, by name."""
    return {path.stem: path for path in sorted(shipped(READY_FOLDER).glob("*.xml")) if _holds_scenario(path)}


def _holds_scenario(path: Path) -> bool:
    """Return whether a file that comes with qsctl is a scenario, not a profile or a service."""
    with path.open("rb") as file:
        return b"<scenario" in file.read(_START_BYTES)


def find_scenario(name: str | None) -> Path:
    """Return the file of a scenario: a path, the name of a ready one, or None for the built-in one.

    Raises:
        NotFound: the name is neither a file nor a ready scenario.
    """
    ready = ready_scenarios()
    if name is None:
        return ready[DEFAULT_READY]
    path = Path(name)
    if path.exists():
        return path
    if name in ready:
        return ready[name]
    near = difflib.get_close_matches(name, ready, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise NotFound(
        f"{name}: there is no such file and no ready scenario of that name",
        remedy=f"Ready scenarios: {', '.join(ready)}.{hint}",
    )


def _read(path: Path, variables: dict[str, str], environment: dict[str, str]) -> Scenario:
    reading = _FileReading(path.parent, variables, environment)
    document = reading.open(path, str(path))
    root = document.root
    if root.tag != SCENARIO.element:
        reading.add(root, f"the file starts with <{root.tag}>", str(root.tag), "<scenario>")
        raise InvalidFile(reading.problems, "the scenario")
    with contextlib.suppress(ValueError):  # a model that there is not is a problem of its attribute
        reading.model = Model((root.get("model") or Model.SOLACE).strip())
    description = root.find("description")
    given: dict[str, object] = {} if description is None else {"description": text_of(description)}
    scenario = build(SCENARIO, root, reading, given)
    for extra in root.findall("description")[1:]:
        reading.add(extra, "a second <description>", allowed="one <description>")
    if scenario is not None:
        scenario = _with_absolute_paths(scenario, path.parent, reading)
        for breach in breaches_of(scenario):
            place = reading.place_of(breach.owner)
            at = root if place is None else place
            before = len(reading.problems)
            reading.add(at, breach.message, breach.found, breach.allowed)
            last = reading.problems[-1]
            if any((each.line, each.message) == (last.line, last.message) for each in reading.problems[:before]):
                reading.problems.pop()  # the element has the same problem itself
    if not reading.problems:
        reading.problems += schema_problems(root, str(path))
    if reading.problems:
        problems = sorted(reading.problems, key=lambda problem: (problem.file != str(path), problem.line))
        raise InvalidFile(problems, "the scenario")
    assert isinstance(scenario, Scenario)
    return dataclasses.replace(scenario, places=places_of(scenario, reading.place_of))


@cache
def _schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(str(shipped(SCHEMA))))


def schema_problems(root: etree._Element, name: str) -> list[Problem]:
    """Return the problems that the validation against the XML schema finds."""
    schema = _schema()
    if schema.validate(root):
        return []
    entries = cast("Iterable[Any]", schema.error_log)
    return [error_at(name, entry.line, entry.message) for entry in entries]


def _with_absolute_paths(scenario: Scenario, folder: Path, reading: ScenarioReading) -> Scenario:
    """Return the scenario with absolute paths of traces and schedules, which its file names relative to its folder."""

    def absolute(stream: Traffic | WorkloadProducer) -> Traffic | WorkloadProducer:
        if not isinstance(stream.arrivals, TraceArrivals):
            return stream
        arrivals = TraceArrivals(str((folder / stream.arrivals.path).resolve()))
        moved = dataclasses.replace(stream, arrivals=arrivals)
        for old, new in ((stream, moved), (stream.arrivals, arrivals)):
            place = reading.place_of(old)
            if place is not None:
                reading.remember(new, place)
        return moved

    traffic = tuple(each for each in map(absolute, scenario.traffic) if isinstance(each, Traffic))
    workload = scenario.workload
    if workload is not None:
        producers = tuple(each for each in map(absolute, workload.producers) if isinstance(each, WorkloadProducer))
        moved = dataclasses.replace(workload, producers=producers)
        place = reading.place_of(workload)
        if place is not None:
            reading.remember(moved, place)
        workload = moved
    world = scenario.world
    if world is not None and world.schedule:
        faulted = dataclasses.replace(world, schedule=str((folder / world.schedule).resolve()))
        place = reading.place_of(world)
        if place is not None:
            reading.remember(faulted, place)
        world = faulted
    replay = scenario.replay
    if replay is not None:
        others = tuple(_recording_at(each, folder, reading) for each in replay.others)
        found = dataclasses.replace(_recording_at(replay, folder, reading), others=others)
        place = reading.place_of(replay)
        if place is not None:
            reading.remember(found, place)
        replay = found
    queue = scenario.queue
    if queue is not None:
        queue = _moved(queue, folder, reading)
    engine = scenario.engine
    if engine is not None:
        engine = _moved(engine, folder, reading)
    absolute_scenario = dataclasses.replace(
        scenario, traffic=traffic, workload=workload, world=world, replay=replay, queue=queue, engine=engine
    )
    place = reading.place_of(scenario)
    if place is not None:
        reading.remember(absolute_scenario, place)
    return absolute_scenario


_Recording = TypeVar("_Recording", Replay, AnotherRecording)


def _recording_at(named: _Recording, folder: Path, reading: ScenarioReading) -> _Recording:
    """Return the part that names a recording with its absolute path, and keep the part's place in the file."""
    if "://" in named.recording:
        return named
    found = dataclasses.replace(named, recording=str((folder / named.recording).resolve()))
    place = reading.place_of(named)
    if place is not None:
        reading.remember(found, place)
    return found


def _moved(value: Any, folder: Path, reading: ScenarioReading) -> Any:
    """Return a part with absolute paths of its traces and measured durations, and keep its place in the file."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        made = inner
        if field.name == "path" and inner:
            made = str((folder / inner).resolve())
        elif isinstance(inner, tuple):
            each = tuple(_moved(one, folder, reading) if dataclasses.is_dataclass(one) else one for one in inner)
            made = inner if all(new is old for new, old in zip(each, inner, strict=True)) else each
        elif dataclasses.is_dataclass(inner):
            made = _moved(inner, folder, reading)
        if made is not inner:
            changed[field.name] = made
    if not changed:
        return value
    moved = dataclasses.replace(value, **changed)
    place = reading.place_of(value)
    if place is not None:
        reading.remember(moved, place)
    return moved


class _FileReading(ScenarioReading):
    """A reader of the files that a scenario refers to: profile files and the simulated service's configuration."""

    def __init__(self, folder: Path, variables: dict[str, str], environment: dict[str, str]) -> None:
        super().__init__()
        self._folder = folder
        self._variables = variables
        self._environment = environment
        self._documents: dict[Path, Document | None] = {}

    def open(self, path: Path, name: str) -> Document:
        """Parse a file and replace its variables; problems of variables are recorded, others raised."""
        document = parse_document(read_file(path, name, LIMITS), name, LIMITS, path.parent)
        self.problems += substitute(document, self._variables, self._environment)
        return document

    def profile_of(self, element: etree._Element) -> etree._Element | None:
        """Return the profile of the same name in the file that `file` names, read once."""
        file = element.get("file")
        if file is None:
            return element
        if next(elements_of(element), None) is not None or set(element.keys()) - {"file", "name"}:
            self.add(element, "a profile from a file has content of its own", file, "only 'name' and 'file'")
            return None
        path = self._folder / file
        if path not in self._documents:
            try:
                self._documents[path] = self.open(path, str(path))
            except InvalidFile as error:
                self.problems += error.problems
                self._documents[path] = None
        document = self._documents[path]
        if document is None:
            return None
        names = [str(each.get("name")) for each in document.root.findall("profile") if each.get("file") is None]
        wanted = element.get("name")
        for profile in document.root.findall("profile"):
            if profile.get("name") == wanted and profile.get("file") is None:
                return profile
        self.add(element, f"{file} has no profile {wanted!r}", str(wanted), ", ".join(names) or "no profile is in it")
        return None

    def service_of(self, element: etree._Element) -> ServiceSettings | None:
        """Return the service that `<service file= name=>` refers to."""
        from qsctl.config.load import load_configuration

        services = element.findall("service")
        for extra in services[1:]:
            self.add(extra, "a second <service>", allowed="one <service>")
        if not services or services[0].get("file") is None:
            self.add(
                services[0] if services else element, "the simulated service is missing", "", '<service file="…"/>'
            )
            return None
        file, name = str(services[0].get("file")), services[0].get("name")
        for attribute in set(map(str, services[0].keys())) - {"file", "name"}:
            self.add(services[0], f"unknown attribute {attribute!r}", attribute, "file, name")
        try:
            if file == SERVICE_FILE:
                return self._recorded_service(services[0])
            loaded = load_configuration(
                [(self._folder / file).absolute()],
                configuration_name=name,
                variables=self._variables,
                environment=self._environment,
                working_directory=self._folder,
                default_files=False,
            )
        except InvalidFile as error:
            self.problems += error.problems
            return None
        return loaded.configuration.service

    def _recorded_service(self, element: etree._Element) -> ServiceSettings | None:
        """Return the service configuration stored in a run folder, as it was resolved for that run."""
        path = self._folder / SERVICE_FILE
        try:
            return msgspec.json.decode(read_file(path, str(path), LIMITS), type=ServiceSettings)
        except UNREADABLE as error:
            self.add(element, f"{path} is damaged: {error}", SERVICE_FILE, "what `qsctl simulate` wrote there")
            return None
