"""The results of the commands on a site: its import, routes with rates, findings, and proposed moves of threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from qsctl.cli.output.declared import DeclaredRows, Heading, read, row_of, table_of
from qsctl.cli.output.results import Block, ListResult, Plain, Row, TableBlock, TextBlock, counted, fields_of
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.netconfig.inventory import ThreadRow, UseRow
    from qsctl.netconfig.lint import SiteFinding
    from qsctl.sim.captured.scenario import CapturedParameter
    from qsctl.sim.site.balance import Balance, ProcessLoad
    from qsctl.sim.site.flows import SiteFlow

_ROWS_SHOWN: Final = 30


@dataclass(frozen=True)
class AssumedValue:
    """A row: an assumed value of the scenario; its values are those of a `CapturedParameter`."""

    path: Annotated[str, "what `--set` calls the value", Heading("Value")]
    value: Annotated[str, "what it is", Heading("Is")]
    why: Annotated[str, "what it was concluded from, or what is missing", Heading("Why")]
    origin: Annotated[str, "derived: concluded from what was given; assumed: it is not known", Heading("From")]


@dataclass(frozen=True)
class ImportedEngine(DeclaredRows, rows=AssumedValue, items="values"):
    """The scenario that was written, and its assumed values."""

    file: Annotated[str, "-o json and yaml: the scenario file, with what it is of beside `values`"]
    name: Annotated[str, "the scenario's name"]
    processes: Annotated[int, "number of processes"]
    threads: Annotated[int, "number of threads"]
    values: tuple[CapturedParameter, ...]
    left_out: Annotated[tuple[str, ...], "what of the site the scenario has not, or has otherwise, and warnings"]
    text: str

    def document(self) -> Plain:
        """Return the file, its sources, and the assumed values."""
        return {**row_of(ImportedEngine, self), "values": self.rows()}

    def xml(self) -> str:
        """Return the scenario's text."""
        return self.text

    def blocks(self) -> Sequence[Block]:
        """Return the file's name, the assumed values, and the parts of the site that were left out."""
        by_origin = Counter(str(each.origin) for each in self.values)
        words = [f"{count} {origin}" for origin, count in sorted(by_origin.items())]
        about = f"; of its values {' and '.join(words)}" if words else ""
        processes = f"{self.processes} process{'es' * (self.processes != 1)}"
        head = f"{self.file}: {counted(self.threads, 'thread')} in {processes}{about}."
        shown = sorted(self.values, key=lambda each: str(each.origin))[:_ROWS_SHOWN]
        blocks: list[Block] = [TextBlock(head)]
        if shown:
            blocks.append(table_of(AssumedValue, shown, order=("path", "value", "origin", "why")))
        if (more := len(self.values) - len(shown)) > 0:
            blocks.append(TextBlock(f"{more} more, with -o json and as comments in the file.", "faint"))
        blocks += [TextBlock(f"Note: {each}", "faint") for each in self.left_out[:_ROWS_SHOWN]]
        if len(self.left_out) > _ROWS_SHOWN:
            blocks.append(TextBlock(f"{len(self.left_out) - _ROWS_SHOWN} more notes, with -o json.", "faint"))
        return blocks


def _rate_text(per_s: float) -> str:
    for seconds, unit in ((1, "s"), (60, "min")):
        if per_s * seconds >= 1:
            return f"{per_s * seconds:.3g}/{unit}"
    return f"{per_s * 3600:.3g}/h"


@dataclass(frozen=True)
class ExportedRoute:
    """A row: the messages from one thread to another; its values are those of a `SiteFlow`."""

    source: Annotated[str, "thread that the messages come in by", Heading("Source")]
    process: Annotated[str, "its process", Heading("Process", rank=1)]
    transaction: Annotated[str, "transaction id; *: any that no other route is for", Heading("Transaction")]
    destination: Annotated[str, "thread that they go out by", Heading("Destination")]
    destination_process: Annotated[str, "its process", Heading("Its process", rank=1)]
    kind: Annotated[str, "raw, translate or generate", Heading("Kind", rank=2)]
    per_s: Annotated[float, "messages a second", Heading("Rate", shown=_rate_text, cell="rate")]


@dataclass(frozen=True)
class ExportedRoutes(DeclaredRows, rows=ExportedRoute, items="flows"):
    """The routes between threads, with their rates."""

    scenario: str
    flows: tuple[SiteFlow, ...]
    graph: str = ""

    def blocks(self) -> Sequence[Block]:
        """Return the table, and the path of the drawing."""
        order = ("source", "process", "transaction", "kind", "destination", "destination_process", "per_s")
        blocks: list[Block] = [table_of(ExportedRoute, self.flows, empty="No route leads anywhere.", order=order)]
        if self.graph:
            blocks.append(TextBlock(f"Routes drawn: {self.graph}"))
        return blocks


@dataclass(frozen=True)
class SiteThreads(ListResult):
    """The threads of a NetConfig, with their connections."""

    threads: tuple[ThreadRow, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "thread": "name of the thread",
        "process": "its process",
        "protocol": "type of its connection",
        "host": "host that it connects to",
        "port": "port that it connects to, or listens on",
        "server": "whether it listens; null: not stated",
        "started": "whether it starts with its process",
        "logged": "database logging; null: not stated",
        "fed_by": "number of threads that feed it",
        "feeds": "number of threads that it feeds",
        "line": "line of the NetConfig",
    }

    def rows(self) -> Sequence[Row]:
        """Return one row per thread."""
        return [fields_of(each, *self.field_help) for each in self.threads]


@dataclass(frozen=True)
class SiteUses(ListResult):
    """The uses of procedures and translations in a NetConfig."""

    uses: tuple[UseRow, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "name": "procedure or translation",
        "place": "IN_DATA, OUT_DATA, IN_REPLY or OUT_REPLY of a thread; pre, translation or post of a route detail",
        "thread": "name of the thread",
        "transaction": "transaction id of the route",
        "destination": "destinations of the detail",
        "enabled": "false: it, or its detail, is disabled",
        "line": "line of the NetConfig",
    }

    def rows(self) -> Sequence[Row]:
        """Return one row per use."""
        return [fields_of(each, *self.field_help) for each in self.uses]


@dataclass(frozen=True)
class SiteFault:
    """A row: a finding about a site; its values are those of a `SiteFinding`."""

    file: Annotated[str, "the file"]
    line: Annotated[int, "line of the part; 0: not known"]
    severity: Annotated[str, "error, warning or note"]
    rule: Annotated[str, "name of the rule"]
    thread: Annotated[str, "thread or process that it is about"]
    message: Annotated[str, "what is wrong"]
    remedy: Annotated[str, "what to do"]


@dataclass(frozen=True)
class LintedSite(DeclaredRows, rows=SiteFault):
    """The findings about a site."""

    file: str
    findings: tuple[SiteFinding, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if there is an error or a warning, else DONE."""
        return ExitStatus.NO if any(each.severity != "note" for each in self.findings) else ExitStatus.DONE

    def items(self) -> Sequence[SiteFault]:
        """Return the findings."""
        return [read(SiteFault, each, file=self.file) for each in self.findings]

    def blocks(self) -> Sequence[Block]:
        """Return one paragraph per finding, then their number."""
        blocks: list[Block] = [
            TextBlock(
                f"{self.file}:{each.line}: {each.severity}: {each.message} [{each.rule}]\n  {each.remedy}",
                "faint" if each.severity == "note" else "bad",
            )
            for each in self.findings
        ]
        counts = Counter(str(each.severity) for each in self.findings)
        if not counts:
            return [TextBlock(f"{self.file}: nothing found.", "good")]
        words = [counted(counts[kind], kind) for kind in ("error", "warning", "note") if counts[kind]]
        return [*blocks, TextBlock(f"{self.file}: {', '.join(words)}.")]


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _waiting_text(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}"


@dataclass(frozen=True)
class BalancedProcess:
    """A row: a process before and after the moves; its values are those of a `ProcessLoad`."""

    process: Annotated[str, "process", Heading("Process")]
    threads_before: Annotated[int, "its threads as it is", Heading("Threads")]
    threads_after: Annotated[int, "its threads after the moves", Heading("After")]
    load_before: Annotated[
        float, "part of all time that it translates, in the busiest hour, as it is",
        Heading("Load", shown=_percent, cell="before"),
    ]  # fmt: skip
    load_after: Annotated[float, "the same after the moves", Heading("After", shown=_percent, cell="after")]
    waiting_before: Annotated[
        float | None, "messages that wait for its translation thread, on average, as it is; simulated",
        Heading("Waiting", shown=_waiting_text, cell="wait_before"),
    ]  # fmt: skip
    waiting_after: Annotated[
        float | None, "the same after the moves", Heading("After", shown=_waiting_text, cell="wait_after")
    ]


@dataclass(frozen=True)
class Balanced(DeclaredRows, rows=BalancedProcess):
    """The proposed moves of threads, and their benefit."""

    scenario: Annotated[str, "-o json and yaml: the scenario, with the moves beside `processes`"]
    found: Balance

    document_help: ClassVar[Mapping[str, str]] = {
        "moves": "threads to move: thread, source, target",
        "hour": "busiest hour of the day; null: rates do not change",
        "is_checked": "whether it was simulated",
        "is_better": "whether fewer messages wait after the moves",
        "simulated_s": "virtual seconds of the check",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if no move helps, else DONE."""
        return ExitStatus.DONE if self.found.is_better else ExitStatus.NO

    def document(self) -> Plain:
        """Return the moves and the processes."""
        return {
            "scenario": self.scenario,
            "moves": [each._asdict() for each in self.found.moves],
            **fields_of(self.found, "hour", "is_checked", "is_better", "simulated_s"),
            "processes": self.rows(),
        }

    def items(self) -> Sequence[ProcessLoad]:
        """Return the processes."""
        return self.found.processes

    def blocks(self) -> Sequence[Block]:
        """Return the moves, the processes before and after, and the command that simulates them."""
        found = self.found
        if not found.moves:
            return [self.table(), TextBlock(f"{self.scenario}: no move helps.")]
        lines = [f"Move {each.thread} from {each.source} to {each.target}." for each in found.moves]
        blocks: list[Block] = [TextBlock("\n".join(lines)), self.table()]
        if not found.is_checked:
            return [*blocks, TextBlock("Computed, and not simulated.", "faint")]
        hour = "" if found.hour is None else f" of the hour from {found.hour}:00"
        text = f"Simulated: {found.simulated_s:,.0f} s{hour}, with the same arrivals before and after."
        if not found.is_better:
            text += " No fewer messages wait: the moves are not worth it."
        values = " ".join(f"--set 'thread[{each.thread}]/process={each.target}'" for each in found.moves)
        return [*blocks, TextBlock(text, "plain" if found.is_better else "bad"), TextBlock(f"To use them: {values}")]

    def table(self) -> TableBlock:
        """Return a table of the processes, with the waiting messages if they were simulated."""
        unknown = () if self.found.is_checked else ("waiting_before", "waiting_after")
        return table_of(BalancedProcess, self.found.processes, leave_out=unknown)
