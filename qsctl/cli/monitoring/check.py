"""`qsctl check …`: figures of clients, queues, services and engines against thresholds, as a monitoring plug-in.

Decides the statuses 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, which are those of such plug-ins and not those of the other
commands; every failure, including a wrong command line, is UNKNOWN with one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Final, cast

import typer
from typer.core import TyperCommand

from qsctl.cli.command import Commands
from qsctl.cli.engine.looks import LookOptions, SourcesArgument
from qsctl.cli.monitoring._check_alerts import fired
from qsctl.cli.monitoring._check_engine import (
    ENGINE_MEASURES,
    EngineStateOption,
    EngineThreadOption,
    engine_values,
    refuse_older,
)
from qsctl.cli.monitoring._check_service import of_dead_letters, of_service, of_services
from qsctl.cli.monitoring._check_values import (
    CLIENT_MEASURES,
    DEAD_LETTER_MEASURES,
    OLDEST_AGE,
    QUEUE_MEASURES,
    SERVICE_MEASURES,
    Checked,
    is_recorded_service,
    known_measure,
    of_clients,
    of_recorded_queues,
    unit_of,
)
from qsctl.cli.monitoring._nagios import CheckStatus, Range, number, one_line, parse_range, performance, status_of
from qsctl.cli.monitoring.listing_source import ListingSource, ReplicationOption
from qsctl.cli.output import render
from qsctl.cli.output.render import OutputFormat
from qsctl.cli.output.results import Block, Result, Row, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import QsctlError, UsageError

COMMANDS: Final = Commands(
    panel=SAMPLES_PANEL, group="check", help="Check figures for a monitoring system: 0 OK, 1, 2, 3 UNKNOWN."
)

WarningOption = Annotated[
    str,
    typer.Option("--warning", "-w", metavar="RANGE", help="Range of good values, else WARNING: 10, 10:, ~:10, @10:20."),
]
CriticalOption = Annotated[
    str,
    typer.Option("--critical", "-c", metavar="RANGE", help="Range of good values, else CRITICAL; in the same form."),
]
_measure_option = partial(typer.Option, rich_help_panel="Measure")
MOST_PERFORMANCE: Final = 50
"""Largest number of items of performance data in a line; the worst ones if there are more values."""
DEFAULT_SERVICE_MEASURE: Final = "current_message_count"
DEFAULT_QUEUE_MEASURE: Final = "depth_percent"


@dataclass(frozen=True)
class CheckResult(Result):
    """The status line of a check, and the values that it is based on."""

    status: CheckStatus
    text: str
    measure: str = ""
    values: tuple[Checked, ...] = ()
    warning: Range | None = None
    critical: Range | None = None

    field_help: ClassVar[Mapping[str, str]] = {
        "status": "OK, WARNING, CRITICAL or UNKNOWN; the exit status is 0, 1, 2 or 3",
        "text": "what was found, in one line",
        "measure": "the figure that was looked at",
        "label": "object that the value belongs to",
        "value": "the value, the worst first",
        "value_status": "the status of this value alone",
        "values": "-o json and yaml: one object a value",
    }

    @property
    def exit_status(self) -> CheckStatus:
        """Return the exit status of a monitoring plug-in."""
        return self.status

    def rows(self) -> Sequence[Row]:
        """Return one row per value."""
        common: Row = {"status": self.status.name, "text": self.text, "measure": self.measure}
        return [
            {
                **common,
                "label": each.label,
                "value": each.value,
                "value_status": status_of(each.value, self.warning, self.critical).name,
            }
            for each in self.values
        ] or [common]

    def document(self) -> Row:
        """Return the status line and its values."""
        return {
            "status": self.status.name,
            "text": self.text,
            "measure": self.measure,
            "values": [{"label": each.label, "value": each.value} for each in self.values],
        }

    def blocks(self) -> Sequence[Block]:
        """Return the status line."""
        unit = unit_of(self.measure)
        items = [
            performance(each.label, each.value, unit, self.warning, self.critical, each.high)
            for each in self.values[:MOST_PERFORMANCE]
        ]
        data = f" | {' '.join(items)}" if items else ""
        return [TextBlock(f"{self.status.name}: {one_line(self.text)}{data}")]


class CheckCommand(TyperCommand):
    """A command that exits with UNKNOWN for a wrong command line; 2 would be CRITICAL to the monitoring system."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the command line; exit with UNKNOWN if it is wrong."""
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERROR as error:
            described = getattr(error, "format_message", None)
            text = described() if described is not None else str(error)
            render.show(CheckResult(CheckStatus.UNKNOWN, f"{text} Try --help."), OutputFormat.TABLE)
            raise typer.Exit(int(CheckStatus.UNKNOWN)) from None


_USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""The parser's exception for a wrong command line: the base of its public exceptions, without a public name."""


@COMMANDS.command(
    "client",
    kind=CheckCommand,
    examples=(
        "qsctl check client 'desks/*' --warning 0 --critical 1000  # discards of the newest run",
        "qsctl check client '*' --measure blocked_percent -w 20 -c 50 --run qsctl-runs/slow-subscriber-1",
        "qsctl check client solace1 --queue G-1 -m depth_percent -w 60 -c 80 --listing captured.txt",
        "qsctl check client 'desks/*' -m blocked_percent -w 20 -c 50 --broker site",
    ),
)
def check_client(
    name: Annotated[
        str, typer.Argument(metavar="CLIENT", help="Name of a client; ? matches one character, * any text.")
    ],
    warning: WarningOption = "",
    critical: CriticalOption = "",
    measure: Annotated[
        str, _measure_option("--measure", "-m", help=f"Figure to check, one of {', '.join(CLIENT_MEASURES)}.")
    ] = "discarded_messages",
    queue: Annotated[
        str,
        _measure_option(metavar="QUEUE", help="Queues to check, by name; ? matches one character, * any text."),
    ] = "*",
    replication: ReplicationOption = 0,
    *,
    source: ListingSource,
) -> CheckResult:
    """Check a client's queues, or how long it was blocked: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

    The worst of the values decides. Looks at a simulated run, at a captured listing, or at a broker.
    """

    def values() -> list[Checked]:
        source.check()
        known_measure(measure, CLIENT_MEASURES)
        return of_clients(name, queue, measure, source, replication)

    return _checked(values, measure, warning, critical)


@COMMANDS.command(
    "queue",
    kind=CheckCommand,
    examples=(
        "qsctl check queue Orders --warning 100 --critical 1000  # of the embedded service",
        "qsctl check queue Orders -m failed_delivery_message_count -c 0 --service dds:57",
        "qsctl check queue D-1 -m high_water_mark_percent -w 80 -c 100 --run qsctl-runs/burst-1",
    ),
)
def check_queue(
    name: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE",
            help="Queue of the service; with --run, --listing or --broker one of a client, such as D-1.",
        ),
    ],
    warning: WarningOption = "",
    critical: CriticalOption = "",
    measure: Annotated[
        str,
        _measure_option(
            "--measure",
            "-m",
            help=f"Figure to check, a number of `qsctl get status` or {OLDEST_AGE}; with --run, --listing or "
            f"--broker one of {', '.join(QUEUE_MEASURES)}.",
            show_default=f"{DEFAULT_SERVICE_MEASURE}, or {DEFAULT_QUEUE_MEASURE}",
        ),
    ] = "",
    replication: ReplicationOption = 0,
    *,
    source: ListingSource,
    service: TargetOptions,
) -> CheckResult:
    """Check a queue of our own service, a run, a listing or a broker: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

    With --run, --listing or --broker the queue of every client is looked at, and the worst decides. Reading the status
    starts the `change` counters again from zero, as `qsctl get status` does.
    """
    if source.run is None and not source.is_captured:
        chosen = measure or DEFAULT_SERVICE_MEASURE
        return _checked(lambda: of_service(name, chosen, service), chosen, warning, critical)

    def values() -> list[Checked]:
        source.check()
        if source.run is not None and is_recorded_service(source.run):
            return of_recorded_queues(source.run, name, measure or "length_messages", replication)
        known_measure(measure or DEFAULT_QUEUE_MEASURE, QUEUE_MEASURES)
        return of_clients("*", name, measure or DEFAULT_QUEUE_MEASURE, source, replication)

    return _checked(values, measure or DEFAULT_QUEUE_MEASURE, warning, critical)


@COMMANDS.command(
    "service",
    kind=CheckCommand,
    examples=(
        "qsctl check service --service dds:57  # CRITICAL when it does not answer or does not deliver",
        "qsctl check service --service dds:57 --expect 3 -w 200 -c 2000  # a cluster, by its answer in ms",
        "qsctl check service -m dead_letter_count -w 0 -c 100",
    ),
)
def check_service(
    warning: WarningOption = "",
    critical: CriticalOption = "",
    measure: Annotated[
        str, _measure_option("--measure", "-m", help=f"Figure to check, one of {', '.join(SERVICE_MEASURES)}.")
    ] = SERVICE_MEASURES[0],
    expect: Annotated[int, typer.Option(min=1, metavar="N", help="Number of services that have to answer.")] = 1,
    *,
    service: TargetOptions,
) -> CheckResult:
    """Check that a service answers and delivers: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

    It is CRITICAL, whatever the thresholds, when it does not answer, has suspended a queue because its disk is full or
    fails, or has no quorum for a replicated queue. Reading the status starts the `change` counters again from zero.
    """
    troubles: list[str] = []

    def values() -> list[Checked]:
        found = of_services(measure, service, expect)
        troubles.extend(found.troubles)
        return list(found.values)

    result = _checked(values, measure, warning or ("~:" if not critical else ""), critical)
    if not troubles:
        return result
    return replace(result, status=CheckStatus.CRITICAL, text="; ".join(troubles))


@COMMANDS.command(
    "dead-letters",
    kind=CheckCommand,
    examples=(
        "qsctl check dead-letters  # WARNING as soon as there is one",
        "qsctl check dead-letters DeadLetters -w 10 -c 1000 --service dds:57",
        f"qsctl check dead-letters -m {OLDEST_AGE} -w 3600 -c 86400",
    ),
)
def check_dead_letters(
    queue: Annotated[
        str,
        typer.Argument(metavar="[QUEUE]", help="Dead-letter queue; left out: every one.", show_default=False),
    ] = "",
    warning: Annotated[
        str,
        typer.Option(
            "--warning", "-w", metavar="RANGE", help="Range of good values, else WARNING: 10, 10:, ~:10, @10:20."
        ),
    ] = "0",
    critical: CriticalOption = "",
    measure: Annotated[
        str, _measure_option("--measure", "-m", help=f"Figure to check, one of {', '.join(DEAD_LETTER_MEASURES)}.")
    ] = DEAD_LETTER_MEASURES[0],
    *,
    service: TargetOptions,
) -> CheckResult:
    """Check how many dead letters there are, or how old: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

    The worst of the queues decides. A service that does not answer is UNKNOWN: `qsctl check service` finds that.
    """
    return _checked(lambda: of_dead_letters(queue, measure, service), measure, warning, critical)


@COMMANDS.command(
    "engine",
    kind=CheckCommand,
    examples=(
        "qsctl check engine hospital.recovery --thread lab_out -w 100 -c 1000  # depth of its queues",
        "qsctl check engine hospital.recovery -m error_messages -w 0 -c 50",
        "qsctl check engine /var/dumps --alerts Alerts/default.alrt",
        "qsctl check engine /var/dumps -m last_receive_s --thread adt_in -c 900 --max-age 10min  # of a timer",
    ),
)
def check_engine(
    sources: SourcesArgument,
    warning: WarningOption = "",
    critical: CriticalOption = "",
    measure: Annotated[
        str, _measure_option("--measure", "-m", help=f"Figure to check, one of {', '.join(ENGINE_MEASURES)}.")
    ] = "queue_messages",
    thread: EngineThreadOption = "*",
    state: EngineStateOption = None,
    max_age: Annotated[
        str | None,
        typer.Option(
            "--max-age",
            metavar="DURATION",
            help="Age of the newest listing from which on the check is UNKNOWN, such as 10min: its timer has stopped.",
            show_default="any",
        ),
    ] = None,
    alerts: Annotated[
        Path | None,
        typer.Option(
            "--alerts",
            metavar="FILE",
            help="File of alerts in the form of default.alrt, in place of a measure: CRITICAL where one fires.",
            show_default="none",
        ),
    ] = None,
    alert_values: Annotated[
        list[str] | None,
        typer.Option(
            "--alert-value",
            metavar="WORD=MEASURE",
            help="Word for VALUE in that file and the measure that it means, as in opqd=queue_messages; may be "
            "repeated.",
            show_default="the titles of alert types, and the measures",
        ),
    ] = None,
    *,
    options: LookOptions,
) -> CheckResult:
    """Check an integration engine by its database or by listings: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

    The worst of the values decides. A database with damaged places is CRITICAL, whatever the thresholds.
    """
    if alerts is not None:
        return _by_alerts(sources, alerts, alert_values or (), max_age, options)
    damage: list[str] = []

    def values() -> list[Checked]:
        found, watched = engine_values(measure, sources, thread, state, options)
        damage.extend(watched.damage)
        if max_age is not None:
            refuse_older(watched, max_age)
        return found

    result = _checked(values, measure, warning, critical)
    if not damage:
        return result
    text = f"{sources[0]} is damaged in {len(damage)} places, {damage[0]}; {result.text}"
    return replace(result, status=CheckStatus.CRITICAL, text=text)


def _by_alerts(
    sources: Sequence[Path], file: Path, words: Sequence[str], max_age: str | None, options: LookOptions
) -> CheckResult:
    """Evaluate a file of alerts; any error is the status UNKNOWN."""
    try:
        found = fired(sources, file, words, max_age, options)
    except (QsctlError, OSError) as error:
        text = f"{error.message}. {error.remedy}" if isinstance(error, QsctlError) else str(error)
        return CheckResult(CheckStatus.UNKNOWN, text.strip(), "alerts")
    values = tuple(Checked(name, value) for name, value in found.values)
    return CheckResult(found.status, found.text, "alerts", values)


def _checked(values: Callable[[], list[Checked]], measure: str, warning: str, critical: str) -> CheckResult:
    """Compare values with thresholds; any error is the status UNKNOWN."""
    try:
        limits = [
            None if not text else parse_range(text, option)
            for text, option in ((warning, "--warning"), (critical, "--critical"))
        ]
        if limits == [None, None]:
            raise UsageError("no threshold is given", remedy="Give --warning or --critical.")
        found = values()
        if not found:
            return CheckResult(CheckStatus.UNKNOWN, "there is nothing to check", measure)
    except QsctlError as error:
        return CheckResult(CheckStatus.UNKNOWN, f"{error.message}. {error.remedy}".strip(), measure)
    except OSError as error:
        return CheckResult(CheckStatus.UNKNOWN, f"{error.filename or ''}: {error.strerror or error}", measure)
    warn, crit = limits
    ordered = sorted(found, key=lambda each: (-status_of(each.value, warn, crit), -each.value))
    status = status_of(ordered[0].value, warn, crit)
    bad = sum(status_of(each.value, warn, crit) is not CheckStatus.OK for each in found)
    percent = "%" * measure.endswith("_percent")
    worst = f"{ordered[0].label}: {measure} is {number(ordered[0].value)}{percent}{ordered[0].more}"
    limit = crit if status is CheckStatus.CRITICAL else warn
    why = f", allowed is {limit.text}" if status is not CheckStatus.OK and limit is not None else ""
    several = f" ({bad} of {len(found)} are not well)" if len(found) > 1 else ""
    return CheckResult(status, f"{worst}{why}{several}", measure, tuple(ordered), warn, crit)
