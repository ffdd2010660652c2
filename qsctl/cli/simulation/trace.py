"""`qsctl trace`: make arrivals for a scenario from the rates that a Prometheus server recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli._input_files import reading
from qsctl.cli.broker_options import PROMETHEUS, http_client
from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.render import note
from qsctl.cli.output.results import Block, Plain, TextBlock, fields_of
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.broker.prometheus import RateRange

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

_SHOWN: Final = 20


def _rate_text(per_second: float) -> str:
    return f"{per_second:,.4g}"


@dataclass(frozen=True)
class TracedSeries:
    """A row: a series, which becomes one client of the trace."""

    client: Annotated[int, "number of the client in the trace, from 0", Heading("Client")]
    series: Annotated[str, "labels of the series", Heading("Series")]
    mean_per_second: Annotated[float, "mean rate", Heading("Mean/s", shown=_rate_text)]
    peak_per_second: Annotated[float, "largest rate of a step", Heading("Peak/s", shown=_rate_text)]


@dataclass(frozen=True)
class TracedRates(DeclaredRows, rows=TracedSeries):
    """The trace that was written, and the rates that it is based on."""

    file: Annotated[str, "-o json and yaml: the trace; empty where none was written"]
    messages: Annotated[int, "-o json and yaml: messages of the trace"]
    rates: RateRange

    document_help: ClassVar[Mapping[str, str]] = {
        "step_seconds": "-o json and yaml: length of a step",
        "clients": "-o json and yaml: the rows",
    }

    def items(self) -> Sequence[TracedSeries]:
        """Return the series."""
        return [
            TracedSeries(number, each.name, sum(each.values) / len(each.values), max(each.values))
            for number, each in enumerate(self.rates.series)
        ]

    def document(self) -> Plain:
        """Return the trace with its rates."""
        return {
            **fields_of(self, "file", "messages"),
            "step_seconds": self.rates.step_s,
            "clients": list(self.rows()),
        }

    def blocks(self) -> Sequence[Block]:
        """Return a table of the series, and the element with which a scenario reads the trace."""
        blocks: list[Block] = [table_of(TracedSeries, self.items()[:_SHOWN])]
        if len(self.rates.series) > _SHOWN:
            blocks.append(TextBlock(f"and {len(self.rates.series) - _SHOWN:,} more: -o csv has all.", "faint"))
        if self.file:
            blocks.append(TextBlock(f"Wrote {self.file}: {self.messages:,} messages.", "good"))
            blocks.append(TextBlock(f'In a scenario: <traffic …><trace file="{self.file}"/></traffic>'))
        return blocks


@COMMANDS.command(
    "trace",
    examples=(
        "qsctl trace 'sum(rate(messages_sent_total[1m]))' --prometheus http://127.0.0.1:9090 --out load.csv",
        "qsctl trace 'rate(client_messages[1m])' --prometheus https://prometheus.example --last 6h --step 1min",
        "qsctl trace --from range.json --out load.csv  # an exported reply to a range query",
    ),
)
def trace(
    query: Annotated[
        str,
        typer.Argument(
            metavar="[QUERY]",
            help="Query in PromQL with messages a second as its values; each series is one client.",
            show_default=False,
        ),
    ] = "",
    prometheus: Annotated[
        str,
        typer.Option(
            metavar="URL|CONTEXT",
            help="Prometheus server, https://HOST:PORT, or a context with its address; credentials are in "
            f"{PROMETHEUS}_USERNAME and {PROMETHEUS}_PASSWORD, in {PROMETHEUS}_TOKEN, or in the context.",
            show_default="none",
        ),
    ] = "",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="File with a server's reply to a range query, in place of a server; counters in it become rates.",
            show_default="the server",
        ),
    ] = None,
    last: Annotated[
        str, typer.Option(metavar="DURATION", help="Length of the range, a duration such as 1h; it ends at --until.")
    ] = "1h",
    until: Annotated[
        str,
        typer.Option(metavar="INSTANT", help="End of the range, as in 2026-11-26T15:00:00Z.", show_default="now"),
    ] = "",
    step: Annotated[
        str, typer.Option(metavar="DURATION", help="Time between two values, a duration such as 15s.")
    ] = "15s",
    message_size: Annotated[int, typer.Option(min=1, max=2**30, help="Length of each message, in bytes.")] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 1,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Longest wait for the answer, a duration such as 500ms or 30s.")
    ] = "30s",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Trace to write, as CSV.", show_default="no trace")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace an existing file.")] = False,
) -> TracedRates:
    """Make a trace of arrivals from the rates that a Prometheus server recorded, for the <trace> of a scenario.

    Within a step, messages arrive at random at the recorded rate. Without --out the rates are shown.
    """
    if (source is None) != bool(query and prometheus) or (source is not None and (query or prometheus)):
        raise UsageError("name either a query of Prometheus or a file",
                         remedy="Give QUERY and --prometheus, or --from FILE.")  # fmt: skip
    if out is not None and out.exists() and not force:
        raise UsageError(f"{out} exists already", remedy="Choose another name, or overwrite it with --force.")
    rates = _exported(source) if source is not None else _asked(query, prometheus, last, until, step, timeout)
    if rates.left_out:
        note(f"{rates.left_out} values are not rates, and count as 0")
    if out is None:
        return TracedRates("", 0, rates)
    from qsctl.sim.arrivals.from_rates import trace_of_rates, write_trace

    made = trace_of_rates([each.values for each in rates.series], rates.step_s, message_size, seed)
    write_trace(made, out)
    return TracedRates(str(out), made.num_rows, rates)


def _exported(source: Path) -> RateRange:
    from qsctl.broker.prometheus import FILE_BYTES_MAX, read_range

    with reading(source), source.open("rb") as stream:
        body = stream.read(FILE_BYTES_MAX + 1)
    return read_range(body, str(source))


def _asked(query: str, prometheus: str, last: str, until: str, step: str, timeout: str) -> RateRange:
    from qsctl.broker.prometheus import query_range
    from qsctl.cli.location import seconds

    length_s, step_s = seconds(last, "--last"), seconds(step, "--step")
    if not 0 < step_s <= length_s:
        raise UsageError(f"--step {step} is not between 0 and --last {last}", remedy="Write it as in 15s.")
    end_s = _instant(until) if until else time.time()
    with http_client(prometheus, timeout, "--prometheus", PROMETHEUS) as client:
        return query_range(client, query, end_s - length_s, end_s - step_s, step_s)


def _instant(text: str) -> float:
    """Return an instant as Unix time in seconds.

    Raises:
        UsageError: the text is not an instant, or has no time zone.
    """
    from datetime import datetime

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise UsageError(f"--until {text!r} is not an instant", remedy="Write it as in 2026-11-26T15:00:00Z.")
    return found.timestamp()
