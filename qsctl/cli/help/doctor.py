"""`qsctl doctor`: check that this machine has what the commands need, and show which Java Spark would use."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.help._finding import Finding
from qsctl.cli.help._migration import Migration, migration_of
from qsctl.cli.help._peer_kinds import PEER_KINDS, PeerKinds
from qsctl.cli.options import VariableOption, variables_of
from qsctl.cli.output.declared import DeclaredRows
from qsctl.cli.output.results import Block, Column, Plain, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.panels import MORE_PANEL
from qsctl.cli.service_options import ANY_SERVICE, StateDirOption, TargetOption, TargetOptions, TimeoutOption
from qsctl.distribution import installed, is_missing
from qsctl.errors import ExitStatus, UsageError

COMMANDS: Final = Commands(panel=MORE_PANEL)


@dataclass(frozen=True)
class Health(DeclaredRows, rows=Finding, items="findings"):
    """The findings; the exit status is 1 if a required part is missing."""

    findings: tuple[Finding, ...]
    all_well: str = "Everything that is needed is here."

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if a required part is missing, else DONE."""
        return ExitStatus.DONE if all(each.good for each in self.findings if each.needed) else ExitStatus.NO

    def document(self) -> Plain:
        """Return an object with the findings."""
        return {"findings": self.rows()}

    def blocks(self) -> Sequence[Block]:
        """Return the list of findings, then the remedies."""
        rows: list[Row] = [
            {
                "state": "ok" if each.good else "missing" if each.needed else "note",
                **fields_of(each, "part", "found"),
            }
            for each in self.findings
        ]
        blocks: list[Block] = [
            TableBlock([Column("state", ""), Column("part", "Part"), Column("found", "Found")], rows)
        ]
        blocks += [
            TextBlock(f"{each.part}: {each.remedy}", "bad" if each.needed else "faint")
            for each in self.findings
            if not each.good and each.remedy
        ]
        if self.exit_status is ExitStatus.DONE:
            blocks.append(TextBlock(self.all_well, "good"))
        return blocks


def java_findings() -> list[Finding]:
    """Return the findings about the Java that Spark would use, and why other installed ones are not used."""
    if is_missing("pyspark"):
        return [Finding("Spark", False, False, "not installed", f"This is {installed()[0]}; qsctl has everything.")]
    from qsctl.summary.spark.java import REMEDY, search_java

    search = search_java()
    passed_over = "; ".join(search.passed_over)
    if search.chosen is None:
        return [Finding("Java", False, True, passed_over, REMEDY)]
    chosen = search.chosen
    why = f" ({passed_over})" if passed_over else ""
    return [Finding("Java", True, True, f"{chosen.version} from {chosen.source}: {chosen.executable}{why}")]


def pyspark_finding(found: str, requirement: str) -> Finding:
    """Return whether a version of PySpark is in the supported range.

    Args:
        found: the version, as in 4.3.0.
        requirement: the version specifier in qsctl's dependencies, with both bounds.
    """
    bounds = dict(re.findall(r"(>=|<)([0-9]+\.[0-9]+)", requirement))
    lowest, beyond = (tuple(map(int, bounds[sign].split("."))) for sign in (">=", "<"))
    highest = f"{beyond[0]}.{beyond[1] - 1}"
    numbers = re.match(r"([0-9]+)\.([0-9]+)", found)
    good = numbers is not None and lowest <= (int(numbers[1]), int(numbers[2])) < beyond
    return Finding(
        "pyspark",
        good,
        False,
        f"{found}; qsctl is made for {bounds['>=']} to {highest}",
        f"pip install '{requirement.strip()}'",
    )


def package_findings() -> list[Finding]:
    """Return the versions of qsctl and of the packages that it depends on."""
    from importlib.metadata import PackageNotFoundError, requires, version

    distribution, own_version = installed()
    findings = [
        Finding(distribution, True, True, own_version),
        Finding("Python", sys.version_info >= (3, 11), True, sys.version.split()[0], "Use Python 3.11 or later."),
    ]
    for requirement in requires(distribution) or ():
        text, _, marker = requirement.partition(";")
        if "extra ==" in marker:
            continue
        found = re.match(r"[A-Za-z0-9._-]+", text)
        assert found is not None
        name = found[0]
        try:
            found_version = version(name)
            is_spark = name == "pyspark"
            findings.append(
                pyspark_finding(found_version, text) if is_spark else Finding(name, True, True, found_version)
            )
        except PackageNotFoundError:
            needed = not marker
            findings.append(Finding(name, False, needed, "not installed", f"pip install '{text.strip()}'"))
    return findings


def dds_finding() -> Finding:
    """Return whether DDS is available; the embedded service works without it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Finding("cyclonedds", True, False, version("cyclonedds"))
    except PackageNotFoundError:
        return Finding(
            "cyclonedds", False, False, "not installed", "pip install cyclonedds, to serve and connect over DDS."
        )


def tcp_finding() -> Finding:
    """Return whether the DDS library supports TCP [QS 9]; UDP is always supported."""
    from qsctl.config.qos_libraries.dds_library import has_tcp, library_path

    path = library_path()
    part = "DDS over TCP"
    if path is None:
        return Finding(part, False, False, "no DDS library")
    if has_tcp():
        return Finding(part, True, False, f"{path.name} is built with TCP")
    return Finding(
        part,
        False,
        False,
        f"{path.name} is built without TCP, as the wheels of cyclonedds are: UDP only",
        "Services that ask for TCP, which qsctl validate lists, run over UDP with --without-tcp; for TCP, build "
        "Cyclone DDS with it (DDS_HAS_TCP) and its Python package against that.",
    )


def folder_findings() -> list[Finding]:
    """Return whether the folders that commands write to are writable."""
    return [
        _writable("working directory", Path.cwd(), True, "Change to a folder that you may write to."),
        _writable("temporary folder", Path(tempfile.gettempdir()), True, "Set TMPDIR to a folder that can be written."),
        _kernels(),
    ]


def _kernels() -> Finding:
    part = "compiled kernels"
    if is_missing("numba"):
        return Finding(part, False, False, "no compiler: numba is not installed")
    try:
        from qsctl.sim.kernel.cache_directory import CACHE_DIRECTORY
        from qsctl.sim.kernel.ready_made import damaged, first_usable, folders, usable
    except ImportError as error:
        return Finding(part, False, True, f"no compiler: {error}", "pip install numba")
    if (ready := first_usable()) is not None:
        text = f"ready-made for {ready[1].baseline}: {ready[0]}"
        if wrong := damaged(*ready):
            text = f"{text}; {len(wrong)} of {len(ready[1].entries)} files are damaged, and compiled at each start"
        return Finding(part, not wrong, False, text, "Run qsctl compile: it makes them again.")
    unusable = [f"{each}: {usable(each)[1]}" for each in folders() if each.exists()]
    cached = _writable_cache(CACHE_DIRECTORY)
    if not cached.good:
        return cached
    when = "some were compiled by runs" if any(CACHE_DIRECTORY.rglob("*.nbc")) else "the first runs compile"
    text = "; ".join([f"not ready-made: {when}, and keep them in {CACHE_DIRECTORY}", *unusable])
    return Finding(part, False, False, text, "Run qsctl compile: it makes all of them now, in some two minutes.")


def _writable_cache(directory: Path) -> Finding:
    part = "compiled kernels"
    folder = directory
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    remedy = "Set NUMBA_CACHE_DIR to a folder that can be written; else kernels are compiled at every start."
    finding = _writable(part, folder, False, remedy)
    return Finding(part, finding.good, False, finding.found.replace(str(folder), str(directory), 1), remedy)


def _writable(part: str, folder: Path, needed: bool, remedy: str) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding(part, True, needed, f"{folder} can be written")
    except OSError as error:
        return Finding(part, False, needed, f"{folder} cannot be written: {error.strerror}", remedy)


@COMMANDS.command(
    "doctor",
    examples=(
        "qsctl doctor  # exit status 1 when something needed is missing",
        "qsctl doctor --service dds:57  # a service: does it answer, deliver, replicate, lose?",
        "qsctl doctor --peer  # which DDS applications can use a queue",
        "qsctl doctor --migrate orders.xml --app USER_QOS_PROFILES.xml  # what of RTI's files is the same here",
        "qsctl doctor -o json",
    ),
)
def doctor(
    service: Annotated[
        str,
        typer.Option(
            help="Location of a service to check instead of the installation: 'embedded:' or 'dds:DOMAIN'.",
            rich_help_panel="Service",
        ),
    ] = "",
    state_dir: StateDirOption = Path(".qsctl"),
    timeout: TimeoutOption = "10s",
    target: TargetOption = ANY_SERVICE,
    peer: Annotated[
        bool,
        typer.Option(
            "--peer",
            help="Show the kinds of DDS applications: what each can do with a queue, and what it must know for it.",
        ),
    ] = False,
    migrate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Configuration of RTI Queuing Service to list: each setting as same, different or not there.",
        ),
    ] = None,
    app: Annotated[
        Path | None,
        typer.Option(
            metavar="PROFILES", help="QoS profiles of applications, listed after the file of --migrate, or alone."
        ),
    ] = None,
    var: VariableOption = None,
) -> Health | PeerKinds | Migration:
    """Check the requirements of the commands: Java for Spark, packages, writable folders. Starts nothing.

    With --service it looks at a service instead: whether it answers and delivers, whether queues have consumers and
    room, what died, and how replicas are. Reading the status starts the `change` counters again from zero. Exits with
    1 when something needed is missing, or a service is not well.
    """
    if migrate is not None or app is not None:
        return migration_of(migrate, app, variables_of(var))
    if var:
        raise UsageError("--var is for --migrate and --app", remedy="Give the file with --migrate FILE.")
    if peer:
        return PeerKinds(tuple(PEER_KINDS))
    if service:
        from qsctl.cli.help._service_findings import service_findings

        options = TargetOptions(service=service, state_dir=state_dir, timeout=timeout, target=target)
        return Health(tuple(service_findings(options)), "The service is well.")
    return Health((*java_findings(), *package_findings(), dds_finding(), tcp_finding(), *folder_findings()))
