"""`qsctl explain slow-subscriber FILE|RUN`: the slow clients, since when they are slow, their limits, and remedies."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.broker_options import BrokerOptions
from qsctl.cli.command import Commands
from qsctl.cli.monitoring.listing_source import ReplicationOption, captured, is_a_run, joined, load_run, optional
from qsctl.cli.output.declared import DeclaredRows, Heading, any_known, read, table_of
from qsctl.cli.output.results import Block, Plain, TextBlock
from qsctl.cli.simulation.results.durations import short_seconds
from qsctl.instant import MICROSECOND_NS, format_duration

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.profiles.listings.model import Listings
    from qsctl.profiles.listings.slowness import SlowClient

COMMANDS: Final = Commands()

_WINDOWS: Final = "Capture `show client NAME connections wide`, with windows, Send-Q, round trip and retransmissions."
_GUARANTEED: Final = (
    "A guaranteed consumer that acknowledges late is never a slow subscriber: its messages wait at the endpoint, as "
    "`show queue NAME` counts them."
)
_TIMES: Final = "A listing has no times: Blocked % is of the last minute, so capture it again to see since when."
_EVENTS: Final = "The run has no event rows: with --level events the instant and the slowness of each client are known."
_ALONE: Final = (
    "group[*]/count=1", "broker/egress-buffer=0", "traffic[to-healthy]/rate=10/s",
)  # fmt: skip
"""Changes that leave only the slow client: no other client fills the port or the broker's buffers."""
_SMALL_PORT_MBIT: Final = 20
"""Rate of a simulated port that is full; a listing of clients does not contain the rate of the captured port."""
_SHOWN: Final = 20
"""Largest number of clients whose figures are explained below the table."""


def _answer(value: bool | None) -> str:
    return "?" if value is None else "Yes" if value else "No"


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{value:g} %"


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


@dataclass(frozen=True)
class ExplainedClient:
    """A row: a slow subscriber."""

    client: Annotated[str, "name of the client", Heading("Client")]
    slow_subscriber: Annotated[
        bool | None, "whether the broker called it a slow subscriber; null: not known",
        Heading("Slow", shown=_answer, cell="slow"),
    ]  # fmt: skip
    blocked_percent: Annotated[
        float | None, "seconds of the last minute in which data could not be sent, with penalties, in percent",
        Heading("Blocked", shown=_percent, cell="blocked"),
    ]  # fmt: skip
    since_seconds: Annotated[
        float | None, "of a run: from its start to when the client first was one; null: not known",
        Heading("Since", shown=short_seconds, cell="since", when=any_known),
    ]  # fmt: skip
    reason: Annotated[str, "application, loss, window, link, port, behind (link or port) or unknown"]
    meaning: Annotated[str, "the reason in words", Heading("Why", cell="why")]
    evidence: Annotated[str, "the figures from which the reason follows"]
    discarded_messages: Annotated[
        int | None, "messages discarded from its queues by congestion; null: not known",
        Heading("Discards (Msgs)", shown=_count, cell="discarded"),
    ]  # fmt: skip
    lever: Annotated[str, "what helps"]
    command: Annotated[
        str, "a simulation that shows it or, of a run, the same run without it; empty where there is none"
    ]


@dataclass(frozen=True)
class ExplainedSlowness(DeclaredRows, rows=ExplainedClient):
    """The slow subscribers, with the limit of each."""

    source: str
    clients: tuple[SlowClient, ...]
    notes: tuple[str, ...] = ()
    is_captured: bool = False
    """Whether the source is a broker's listing, which may lack figures that a run has."""

    def items(self) -> Sequence[ExplainedClient]:
        """Return the clients in the order in which they became slow, or the slowest first."""
        return [
            read(
                ExplainedClient, each, client=each.name, slow_subscriber=each.is_slow, reason=each.reason.key,
                since_seconds=None if each.since_ns is None else each.since_ns / 1e9, meaning=each.reason.words,
                lever=each.reason.lever,
            )
            for each in self.clients
        ]  # fmt: skip

    def document(self) -> Plain:
        """Return the clients and the notes."""
        return {"source": self.source, "clients": list(self.rows()), "notes": list(self.notes)}

    def blocks(self) -> Sequence[Block]:
        """Return a table of the clients; then the figures of each, and the remedies for each reason."""
        notes: list[Block] = [TextBlock(note, "faint") for note in self.notes]
        if not self.clients:
            # Notes of a capture may state what it lacks, or what could not be read.
            none = TextBlock(f"{self.source}: no client is slow.", "good")
            none = TextBlock(f"{self.source}: no client is listed as slow.") if self.is_captured else none
            return [none, *notes]
        order = ("client", "slow_subscriber", "blocked_percent", "since_seconds", "discarded_messages", "meaning")
        table = table_of(ExplainedClient, self.items(), title=f"{self.source}: slow subscribers", order=order)
        blocks: list[Block] = [table, self._figures()]
        return [*blocks, *self._levers(), *notes]

    def _figures(self) -> Block:
        lines = [f"{each.name}: {each.evidence}." for each in self.clients[:_SHOWN]]
        if len(self.clients) > _SHOWN:
            lines.append(f"and {len(self.clients) - _SHOWN:,} more, see -o json.")
        return TextBlock("\n".join(lines))

    def _levers(self) -> list[Block]:
        """Return the remedy for each reason, with up to three different commands that check it."""
        blocks: list[Block] = []
        for reason in {each.reason.key: each.reason for each in self.clients}.values():
            of_it = [each for each in self.clients if each.reason is reason]
            commands = list(dict.fromkeys(each.command for each in of_it if each.command))[:3]
            text = "\n  ".join((reason.words, f"Helps: {reason.lever}.", *(f"Check: {each}" for each in commands)))
            blocks.append(TextBlock(text))
        return blocks


def mechanism(client: SlowClient) -> str:
    """Return the command that simulates a client's limit with a listing's figures; empty if unknown.

    A listing does not contain the load: 1.5 times the limit is offered, in messages of 1 KB.
    """
    limit = client.limit
    group = "group[stalled]"
    changes = [f"{group}/pause[*]/duration=1ms", *_ALONE]
    round_trip = format_duration(limit.round_trip_us * MICROSECOND_NS)
    offered = limit.bits_per_second or 0.0
    match client.reason.key:
        case "application":
            changes += [f"{group}/service-time/duration=1ms", "traffic[to-stalled]/rate=1500/s"]
        case "window" if offered:
            changes += [
                f"{group}/round-trip={round_trip}",
                f"profile/tcp/maximum-window={limit.window_bytes}",
                f"profile/tcp/transmit-queue={limit.window_bytes}",
            ]
        case "loss" if offered:
            changes += [f"{group}/round-trip={round_trip}", f"{group}/loss={limit.loss:.2g}"]
        case "behind":
            offered = _SMALL_PORT_MBIT * 1e6
            changes += [f"port/rate={_SMALL_PORT_MBIT} Mbit/s", f"{group}/round-trip={round_trip}"]
        case _:
            return ""
    if offered:
        changes.append(f"traffic[to-stalled]/rate={math.ceil(1.5 * offered / 8 / 1024)}/s")
    words = ["qsctl", "simulate", "slow-subscriber", "--by", "group"]
    return shlex.join([*words, *(word for change in changes for word in ("--set", change))])


@COMMANDS.command(
    "slow-subscriber",
    examples=(
        "qsctl explain slow-subscriber qsctl-runs/slow-subscriber-1",
        "qsctl explain slow-subscriber captured.txt",
        "ssh broker show client '*' connections wide | qsctl explain slow-subscriber - -o json",
        "qsctl explain slow-subscriber --broker https://broker.example:943",
    ),
)
def slow_subscriber(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE|RUN]",
            help="Run folder; or what was captured: `show client … connections wide`, `… slow-subscriber`, `… stats "
            "queue`, replies of SEMP; -: standard input.",
            show_default=False,
        ),
    ] = None,
    replication: ReplicationOption = 0,
    *,
    broker: BrokerOptions,
) -> ExplainedSlowness:
    """Explain slow subscribers: each client, since when, its limit, the remedy, and a simulation that checks it.

    A client is limited by its application, its window over the round trip, loss, its link, or the broker's port.
    """
    if is_a_run(source, broker):
        from qsctl.sim.listings.slowness import explain_slow_clients

        state = load_run(source, replication)
        notes = [] if state.run.info.log_level == "events" else [_EVENTS]
        return ExplainedSlowness(str(source), tuple(explain_slow_clients(state, source)), (*notes, _GUARANTEED))
    from qsctl.profiles.listings.slowness import slow_clients

    found, name = captured(source, broker, _asked)
    clients = tuple(dataclasses.replace(each, command=mechanism(each)) for each in slow_clients(found))
    notes = list(found.notes)
    if any(each.reason.key == "unknown" for each in clients):
        notes.append(_WINDOWS)
    if clients:
        notes.append(_TIMES)
    return ExplainedSlowness(name, clients, (*notes, _GUARANTEED), is_captured=True)


def _asked(broker: SempBroker) -> Listings:
    """Query the flags and discards of clients, their queues, and their connections with windows."""
    return joined(broker.listings("clients"), *optional(broker.connections, broker.client_queues))
