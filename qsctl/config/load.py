"""Loading a configuration: the table of contents of this package.

Load order (3.1), parse, `$(NAME)` (3.4), schema (3.2), inheritance and building (3.3), rules across elements. A step
collects its problems; nothing fails before all that can be checked is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lxml.etree import _Element

from qsctl.config._build import BuildContext, build_service
from qsctl.config._reader import ServiceReading
from qsctl.config.budgets import ServiceLimits
from qsctl.config.files.document import Document
from qsctl.config.files.load_order import ConfigurationSource, sources_in_order
from qsctl.config.files.schema import check_document
from qsctl.config.files.strict import spelling_problems
from qsctl.config.files.variables import substitute, without_consequences
from qsctl.config.qos_libraries.qos import QosLibraries
from qsctl.config.rules import service_problems, tree_problems
from qsctl.config.sample_types.types import TypeLibrary, read_types
from qsctl.config.settings import DEFAULT_APPLICATION_NAME, ServiceConfiguration
from qsctl.declared.problems import (
    InvalidFile,
    NotServed,
    Problem,
    Severity,
    did_you_mean,
    error_at,
    file_of,
    has_errors,
    problem_at,
    shown,
    unsupported,
)


@dataclass(frozen=True)
class LoadedService:
    """One service of the sources with what its reading left."""

    configuration: ServiceConfiguration
    reading: ServiceReading
    element: _Element


@dataclass(frozen=True)
class LoadedConfiguration:
    """A valid service; `problems` are what is unsupported, warnings and notes. `origins`: where a value comes from."""

    configuration: ServiceConfiguration
    problems: tuple[Problem, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def require_served(self) -> None:
        """Raise an error if `qsctl serve` cannot do all that the configuration promises.

        Raises:
            NotServed: with every reason.
        """
        if found := unsupported(self.problems):
            raise NotServed(self.configuration.name, found)


@dataclass(frozen=True)
class Judgement:
    """The findings about sources: every problem, and which of their services `qsctl serve` would start."""

    problems: tuple[Problem, ...]
    services: Mapping[str, bool]
    """By name: whether it would be started. Empty where the sources hold QoS profiles or types only."""
    limits: Mapping[str, ServiceLimits]
    """Of the same services."""


@dataclass
class _Loading:
    """The state that the steps of loading pass on."""

    documents: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    libraries: QosLibraries = field(default_factory=QosLibraries)
    types: TypeLibrary = field(default_factory=TypeLibrary)
    services: dict[str, _Element] = field(default_factory=dict)
    served: dict[str, bool] = field(default_factory=dict)
    """The services that were built, and whether each can be served."""
    limits: dict[str, ServiceLimits] = field(default_factory=dict)

    @property
    def broken(self) -> bool:
        return has_errors(self.problems)


def load_configuration(
    sources: Sequence[str | Path | ConfigurationSource],
    *,
    configuration_name: str | None,
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    working_directory: Path,
    application_name: str | None = None,
    domain_id_base: int = 0,
    default_files: bool = True,
    persistent_storage_path: Path | None = None,
    persistent_file_prefix: str | None = None,
    is_elsewhere: bool = False,
    without_tcp: bool = False,
) -> LoadedConfiguration:
    """Return the configuration of one service from all its sources.

    Args:
        sources: files, `a.xml;b.xml`, or `str://"<dds>…</dds>"`, loaded after the default ones.
        configuration_name: the `<queuing_service>` to use (-cfgName); None where there is only one.
        variables: values for `$(NAME)`, before those of the environment.
        environment: also names the default files: NDDSHOME and NDDS_QOS_PROFILES.
        working_directory: what relative names are relative to.
        application_name: what commands call the run (-appName); the configuration's name unless given.
        domain_id_base: added to every domain (-domainIdBase).
        default_files: whether the default files are loaded where they exist.
        persistent_storage_path: in place of the directory of the files (-persistentStoragePath).
        persistent_file_prefix: in place of their prefix (-persistentFilePrefix).
        is_elsewhere: whether the service is of another machine or time: the files that it names need not be here.
        without_tcp: whether participants that ask for TCP are served over UDP alone (--without-tcp).

    Raises:
        InvalidFile: with every problem, if one is an error.
    """
    loading = _read(sources, variables, environment, working_directory, default_files)
    element = _chosen(loading, configuration_name)
    if element is None:
        raise InvalidFile(_in_order(loading), "the configuration")
    context = _context(loading, working_directory, domain_id_base)
    context = replace(context, storage_directory=persistent_storage_path, file_prefix=persistent_file_prefix)
    loaded = _build(loading, element, context, application_name, is_elsewhere=is_elsewhere, without_tcp=without_tcp)
    loading.libraries.check()
    loading.problems.extend(loading.libraries.problems)
    problems = _without_other_services(loading, _in_order(loading), element)
    if has_errors(problems):
        raise InvalidFile(problems, "the configuration")
    notes = tuple(str(problem) for problem in problems if problem.severity is Severity.NOTE)
    return LoadedConfiguration(replace(loaded.configuration, notes=notes), tuple(problems), loaded.reading.origins)


def judge_files(
    sources: Sequence[str | Path],
    *,
    configuration_name: str | None = None,
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    working_directory: Path,
    default_files: bool = True,
    strict: bool = False,
    without_tcp: bool = False,
) -> Judgement:
    """Judge the sources: all their services, or the named one. Invalid content becomes a problem, not an error.

    With `strict` it also reports spellings that only files in the field use and extensions of vendors; warnings stay
    warnings: see `strictly`. With `without_tcp` a service is one that `--without-tcp` would start.
    """
    loading = _read(sources, variables, environment, working_directory, default_files, strict=strict)
    if strict:
        for document in loading.documents:
            loading.problems.extend(spelling_problems(document.root))
    context = _context(loading, working_directory, 0)
    if configuration_name is not None or not loading.services:
        profiles = None if configuration_name is not None else _profiles_only(loading)
        chosen = _chosen(loading, configuration_name) if profiles is None else None
        elements = [chosen] if chosen is not None else []
        if profiles is not None:
            loading.problems.append(profiles)
    else:
        elements = list(loading.services.values())
    for element in elements:
        _build(loading, element, context, None, without_tcp=without_tcp)
    loading.libraries.check()
    loading.problems.extend([*loading.libraries.problems, *loading.libraries.notes])
    problems = _in_order(loading)
    if configuration_name is not None and elements:
        problems = _without_other_services(loading, problems, elements[0])
    broken = any(not problem_is_of_a_service(problem) for problem in problems if problem.severity is Severity.ERROR)
    served = {name: is_served and not broken for name, is_served in loading.served.items()}
    return Judgement(tuple(problems), served, loading.limits)


def problem_is_of_a_service(problem: Problem) -> bool:
    """Return whether a problem concerns one service; any other one prevents all services from starting."""
    return "/queuing_service[" in f"/{problem.path}"


def _without_other_services(loading: _Loading, problems: Sequence[Problem], element: _Element) -> list[Problem]:
    """Return the problems that prevent a service from starting: its own, and those of no service."""
    others = [
        f"/queuing_service[{shown(name)}]/" for name, other in loading.services.items() if name and other is not element
    ]
    return [problem for problem in problems if not any(other in f"/{problem.path}/" for other in others)]


def _read(
    sources: Sequence[str | Path | ConfigurationSource],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    working_directory: Path,
    default_files: bool,
    *,
    strict: bool = False,
) -> _Loading:
    """Read the sources: load order, parsing, variables, schema; collect their QoS libraries, types and services."""
    loading = _Loading()
    for source in sources_in_order(
        sources, environment=environment, working_directory=working_directory, default_files=default_files
    ):
        try:
            document = source.document(working_directory)
        except InvalidFile as error:
            loading.problems.extend(error.problems)
            continue
        loading.documents.append(document)
        unresolved = substitute(document, variables, environment)
        loading.problems.extend(unresolved)
        loading.problems.extend(without_consequences(check_document(document, note_extensions=strict), unresolved))
        loading.problems.extend(tree_problems(document.root))
    _merge(loading)
    return loading


def _merge(loading: _Loading) -> None:
    parents: list[tuple[_Element, Path | None]] = []
    for document in loading.documents:
        if document.root.tag != "dds":
            continue
        for child in document.root:
            if child.tag == "qos_library":
                loading.libraries.add(child)
            elif child.tag == "types":
                parents.append((child, document.directory))
            elif child.tag == "queuing_service":
                _add_service(loading, child)
    loading.types, problems = read_types(parents)
    loading.problems.extend(problems)


def _add_service(loading: _Loading, element: _Element) -> None:
    """Add a service to those of the sources; it replaces one of the same name, with a note if that is of another file.

    Two of one name in one file are an error, which a rule reports.
    """
    name = " ".join((element.get("name") or "").split())
    earlier = loading.services.pop(name, None)
    if earlier is not None and file_of(earlier) != file_of(element):
        loading.problems.append(
            problem_at(
                element, f"this service replaces the one of {file_of(earlier)}", severity=Severity.NOTE, found=name
            )
        )
    loading.services[name] = element


def _context(loading: _Loading, working_directory: Path, domain_id_base: int) -> BuildContext:
    substituted = {element: text for document in loading.documents for element, text in document.substituted.items()}
    return BuildContext(
        DEFAULT_APPLICATION_NAME, domain_id_base, working_directory, loading.libraries, loading.types, substituted
    )


def _chosen(loading: _Loading, configuration_name: str | None) -> _Element | None:
    """Return the service to use; where none can be chosen, add a problem."""
    names = list(loading.services)
    if configuration_name is not None and configuration_name in loading.services:
        return loading.services[configuration_name]
    if configuration_name is None and len(names) == 1:
        return loading.services[names[0]]
    if configuration_name is None and names:
        last = file_of(loading.services[names[-1]])
        of_last = [name for name in names if file_of(loading.services[name]) == last]
        if len(of_last) == 1:
            return loading.services[of_last[0]]  # the others come from default files
    if not names and loading.broken:
        return None  # what is broken explains it better
    file = loading.documents[-1].name if loading.documents else ""
    if configuration_name is not None:
        message, found = "there is no such <queuing_service>", shown(configuration_name)
    elif names:
        message, found = "there are several services: one must be named", ", ".join(names)
    else:
        message, found = "there is no <queuing_service> (Table 3.1)", "none"
    loading.problems.append(
        error_at(
            file,
            0,
            message,
            path="dds",
            found=found,
            allowed=", ".join(names[:20]) or "at least one",
            suggestion=did_you_mean(configuration_name or "", names) or "Choose one with --config-name." * bool(names),
        )
    )
    return None


def _profiles_only(loading: _Loading) -> Problem | None:
    """Return the hint for sources that hold QoS profiles or types and no service ([QS 3.1], the first three files)."""
    if loading.services or loading.broken or not loading.documents:
        return None
    document = loading.documents[-1]
    held = {"qos_library": "QoS profiles", "types": "types"}
    found = [words for tag, words in held.items() if document.root.find(tag) is not None]
    if not found:
        return None
    return problem_at(
        document.root,
        f"this file holds {' and '.join(found)} and no service",
        severity=Severity.NOTE,
        suggestion="It is loaded beside a file with a <queuing_service>; alone there is nothing to serve.",
    )


def _build(
    loading: _Loading,
    element: _Element,
    context: BuildContext,
    application_name: str | None,
    *,
    is_elsewhere: bool = False,
    without_tcp: bool = False,
) -> LoadedService:
    name = " ".join((element.get("name") or "").split())
    context = replace(context, application_name=application_name or name or DEFAULT_APPLICATION_NAME)
    configuration, reading = build_service(element, context)
    found = [
        *reading.problems,
        *service_problems(
            configuration,
            reading,
            element,
            context.working_directory,
            named_application=application_name is not None,
            is_elsewhere=is_elsewhere,
            without_tcp=without_tcp,
        ),
    ]
    loading.problems.extend([*context.libraries.problems, *context.libraries.notes, *found])
    relevant = _without_other_services(loading, loading.problems, element)
    loading.limits[name] = configuration.limits
    loading.served[name] = not (has_errors(relevant) or unsupported(relevant))
    return LoadedService(configuration, reading, element)


def _in_order(loading: _Loading) -> list[Problem]:
    """Return the problems, each once, in the order of the files and their lines."""
    files = {document.name: at for at, document in enumerate(loading.documents)}
    once: dict[tuple[str, int, str, str], Problem] = {}
    for problem in loading.problems:
        once.setdefault((problem.file, problem.line, problem.path, problem.message), problem)
    return sorted(once.values(), key=lambda problem: (files.get(problem.file, -1), problem.line))
