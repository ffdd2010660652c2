"""`qsctl explain discards`: the causes of discarded messages, the remedies, and simulations that test them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.broker_options import BrokerOptions
from qsctl.cli.command import Commands
from qsctl.cli.configuration import explain_setting
from qsctl.cli.monitoring import slow_subscriber
from qsctl.cli.monitoring.listing_source import captured, is_a_run, joined, optional
from qsctl.cli.output.declared import DeclaredRows, Heading, read, table_of, varied
from qsctl.cli.output.results import Block, Plain, TextBlock
from qsctl.cli.panels import SIMULATION_PANEL

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.profiles.listings.model import Listings
    from qsctl.sim.listings.discards import Explained

COMMANDS: Final = Commands(
    panel=SIMULATION_PANEL,
    group="explain",
    help="Explain what a run or a captured listing shows, or a setting of a service.",
    parts=(slow_subscriber.COMMANDS, explain_setting.COMMANDS),
)

READY_COMMANDS: Final = {
    "transmit_congestion": "qsctl size burst --target 'discards({queue})=0' --vary 'max-depth({queue})'",
    "client_not_connected": "qsctl simulate slow-subscriber --by group --set broker/slow-disconnect=false",
    "client_disconnected": "qsctl simulate slow-subscriber --by group --set broker/slow-disconnect=false",
    "msg_spool_ingress": "qsctl simulate guaranteed --by group --set 'endpoint[throttled]/max-messages=1000'",
    "spool_over_quota": "qsctl simulate guaranteed --by group --set 'endpoint[throttled]/max-messages=1000'",
    "endpoint_over_quota": "qsctl simulate guaranteed --by group --set 'endpoint[throttled]/max-messages=1000'",
    "low_priority_congestion": "qsctl simulate guaranteed --by group --set 'endpoint[throttled]/low-priority-limit=50'",
    "egress_spool_congestion": "qsctl simulate guaranteed --by group --set 'endpoint[throttled]/max-messages=1000'",
    "ingress_spool_congestion": "qsctl simulate guaranteed --by group --set 'endpoint[throttled]/max-messages=1000'",
    "ttl_expired": "qsctl simulate dead-messages --set 'durable-queue[work]/max-ttl=1min'",
    "ttl_expired_to_dmq": "qsctl simulate dead-messages --set 'durable-queue[work]/max-ttl=1min'",
    "redelivery_exceeded": "qsctl simulate dead-messages --set 'durable-queue[work]/flow[*]/fails=0'",
    "redelivery_exceeded_to_dmq": "qsctl simulate dead-messages --set 'durable-queue[work]/flow[*]/fails=0'",
    "message_elided": "qsctl simulate web-messaging --by group --set 'profile[*]/eliding/enabled=false'",
    "msg_too_big": "qsctl simulate ingress --by group --set 'broker/max-message=200 MB'",
    "ingress_rate": "qsctl simulate ingress --by group --set broker/ingress-rate=0 --set broker/ingress-buffer=0",
}
"""Ready scenarios that show a cause's mechanism, for captured figures, whose load is unknown."""

BROKER: Final = "broker"
_DIRECT: Final = "D-1"
"""The queue of a ready scenario, if the listing does not name one."""


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


@dataclass(frozen=True)
class ExplainedCause:
    """A row: a cause of discards."""

    of: Annotated[str, "whose messages: a run, the broker, a message VPN or a client", Heading("Of", when=varied)]
    cause: Annotated[str, "the cause's key"]
    side: Annotated[str, "egress or ingress", Heading("Side")]
    messages: Annotated[int, "messages discarded by it", Heading("Messages")]
    share: Annotated[
        float, "share of the discards of the same source and side", Heading("Share", shown=_percent, cell="share_text")
    ]
    meaning: Annotated[str, "the cause in words", Heading("Cause")]
    is_loss: Annotated[bool, "whether a message is lost by it; an elided one is replaced by a newer one"]
    most: Annotated[str, "the client and queue with most of them", Heading("Most at", when=any)]
    lever: Annotated[str, "what helps"]
    command: Annotated[str, "a simulation that shows what it would do; empty where the simulator has no such cause"]


@dataclass(frozen=True)
class ExplainedDiscards(DeclaredRows, rows=ExplainedCause):
    """The causes of discards, with their remedies."""

    source: str
    causes: tuple[Explained, ...]
    totals: tuple[tuple[str, str, int], ...] = ()
    """Totals stated by captured statistics: their owner, `egress` or `ingress`, and the number of messages."""
    usage: tuple[str, ...] = ()
    """A line for each part of the spool and each nearly full endpoint, if their usage was captured."""
    notes: tuple[str, ...] = ()

    document_help: ClassVar[Mapping[str, str]] = {
        "totals": "-o json and yaml: the totals that captured statistics state",
        "usage": "-o json and yaml: how full the message spool and its fullest queues were, where it was captured",
    }

    def items(self) -> Sequence[ExplainedCause]:
        """Return the causes, the most frequent first."""
        sums: dict[tuple[str, str], int] = {}
        for each in self.causes:
            key = (each.of, each.cause.side)
            sums[key] = sums.get(key, 0) + each.messages
        return [
            read(
                ExplainedCause, each, cause=each.cause.key, side=each.cause.side, meaning=each.cause.words,
                share=each.messages / sums[each.of, each.cause.side], is_loss=each.cause.is_loss,
                lever=each.cause.lever,
            )
            for each in self.causes
        ]  # fmt: skip

    def document(self) -> Plain:
        """Return the causes and the totals."""
        totals: list[Plain] = [{"of": of, "side": side, "messages": count} for of, side, count in self.totals]
        lists = {"usage": list(self.usage), "notes": list(self.notes)}
        return {"source": self.source, "causes": list(self.rows()), "totals": totals, **lists}

    def blocks(self) -> Sequence[Block]:
        """Return a table of losses by cause; then the remedies, and commands that check them."""
        if not self.causes:
            # Notes state what the source lacks, or what could not be read.
            text = "no discard is listed" if self.notes else "no message was discarded"
            return [
                TextBlock(f"{self.source}: {text}.", "plain" if self.notes else "good"),
                *self._checks(),
                *self._notes(),
            ]
        table = table_of(ExplainedCause, self.items(), title=f"{self.source}: discards by cause")
        blocks: list[Block] = [table, *self._checks()]
        for each in {each.cause.key: each for each in self.causes}.values():
            text = f"{each.cause.words}\n  Helps: {each.cause.lever}."
            blocks.append(TextBlock(f"{text}\n  Check: {each.command}" if each.command else text))
        return [*blocks, *self._notes()]

    def _checks(self) -> list[Block]:
        """Return a note that compares the sum of the causes with the stated totals; empty if nothing is stated."""
        lines = []
        for of, side, total in self.totals:
            counted = [each for each in self.causes if each.of == of and each.cause.side == side]
            named = sum(each.messages for each in counted if each.cause.is_loss or each.cause.statistics == "clients")
            rest = total - named
            balance = f"; {rest:,} by causes that are not listed" if rest > 0 else ""
            balance = f"; the causes come to {-rest:,} more" if rest < 0 else balance
            lines.append(f"{of}: {total:,} {side} discards in total{balance}.")
        lines += self._spool_checks()
        lines += self.usage
        return [TextBlock("\n".join(lines), "faint")] if lines else []

    def _spool_checks(self) -> list[str]:
        """Return lines that compare the sum of the spool's own causes with the broker's single figure for the spool."""
        from qsctl.profiles.listings.discards import SPOOL, SPOOL_FIGURES

        lines = []
        for side, key in SPOOL_FIGURES.items():
            stated = next((each.messages for each in self.causes if each.of == BROKER and each.cause.key == key), None)
            told = [each for each in _of_spool(self.causes) if each.cause.side == side and each.cause.is_loss]
            if stated is not None and told:
                lines.append(
                    f"{SPOOL}: its {side} causes come to {sum(each.messages for each in told):,} of these {stated:,}."
                )
        return lines

    def _notes(self) -> list[Block]:
        return [TextBlock(note, "faint") for note in self.notes]


@COMMANDS.command(
    "discards",
    examples=(
        "qsctl explain discards qsctl-runs/slow-subscriber-1",
        "qsctl explain discards captured.txt",
        "qsctl explain discards reply.xml -o json",
        "qsctl explain discards --broker https://broker.example:943 --message-vpn markets",
    ),
)
def discards(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE|RUN]",
            help="Run folder; or what was captured: `show stats client`, `show message-spool stats`, listings, "
            "replies of SEMP; -: standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    broker: BrokerOptions,
) -> ExplainedDiscards:
    """Explain discards: how many by which cause, what helps, and the simulation that would show it.

    The total of egress discards that a broker states is mostly not congestion: causes are kept apart. Why the message
    spool dropped messages is in statistics of its own, which may be in the same file.
    """
    if is_a_run(source, broker):
        from qsctl.sim.listings.discards import explain_run

        return ExplainedDiscards(str(source), tuple(explain_run(source)))
    found, name = captured(source, broker, _asked)
    causes = [*_of_statistics(found), *_of_queues(found)]
    order = {each.of: number for number, each in enumerate(found.discards)}
    causes.sort(key=lambda each: (order.get(each.of, -1), -each.messages))
    totals = tuple(
        (each.of, side, total)
        for each in found.discards
        for side, total in (("egress", each.total_egress), ("ingress", each.total_ingress))
        if total
    )
    notes = list(found.notes)
    if _spool_is_untold(causes):
        notes.append("What the message spool dropped or refused has causes of its own: `show message-spool stats`.")
    if any(each.queues for each in found.clients) or found.neighbors:
        notes.append("A listing of queues counts congestion alone: `show stats client` has the other causes.")
    if not (found.discards or found.clients or found.neighbors or found.spools or found.endpoints):
        notes.append(
            "This listing has no discards: capture `show stats client`, `show message-spool stats` or "
            "`show client … stats queue`."
        )
    return ExplainedDiscards(name, tuple(causes), totals, tuple(_usage_lines(found)), tuple(notes))


def _of_spool(causes: Sequence[Explained]) -> list[Explained]:
    """Return the causes of discards in the whole spool or, if these are missing, in each message VPN."""
    from qsctl.profiles.listings.discards import SPOOL, of_message_vpn

    of_all = [each for each in causes if each.of == SPOOL]
    return of_all or [each for each in causes if each.of.startswith(of_message_vpn(""))]


def _usage_lines(found: Listings) -> list[str]:
    """Return the usage of each part of the spool, and of the endpoints that are nearest to their quota."""
    lines = []
    for spool in found.spools:
        if spool.usage_mb is None and spool.spooled_messages is None:
            continue
        parts = [] if spool.usage_mb is None else [f"{spool.usage_mb:,.4g} MB"]
        if spool.usage_mb is not None and spool.maximum_usage_mb:
            parts = [f"{spool.usage_mb:,.6g} of {spool.maximum_usage_mb:,.6g} MB"]
        parts += [] if spool.spooled_messages is None else [f"{spool.spooled_messages:,} messages"]
        lines.append(f"{spool.of}: {', '.join(parts)} spooled.")
    full = [
        (each.usage_mb / each.maximum_usage_mb, each)
        for each in found.endpoints
        if each.usage_mb is not None and each.maximum_usage_mb
    ]
    lines += [
        f"{each.kind} {each.name}: {each.usage_mb:,.6g} of {each.maximum_usage_mb:,.6g} MB spooled."
        for part, each in sorted(full, key=lambda one: -one[0])[:_FULLEST]
        if part >= _NEARLY_FULL
    ]
    return lines


_FULLEST: Final = 5
_NEARLY_FULL: Final = 0.8
"""Fraction of its quota from which an endpoint is listed: the default of the broker's own event."""


def _asked(broker: SempBroker) -> Listings:
    """Query the discards of message VPNs, clients and endpoints, and the broker's discards by cause."""
    return joined(
        broker.listings("clients", "queues", "topicEndpoints"), *optional(broker.statistics, broker.client_queues)
    )


def _spool_is_untold(causes: Sequence[Explained]) -> bool:
    """Return whether the causes contain discards of the spool, but not the spool's own statistics."""
    from qsctl.profiles.listings.discards import SPOOL_FIGURES

    return any(each.cause.key in SPOOL_FIGURES.values() for each in causes) and not _of_spool(causes)


def _of_statistics(found: Listings) -> list[Explained]:
    from qsctl.profiles.listings.discards import BY_KEY
    from qsctl.sim.listings.discards import Explained as Made

    return [
        Made(each.of, BY_KEY[key], count, command=READY_COMMANDS.get(key, "").format(queue=_DIRECT))
        for each in found.discards
        for key, count in each.causes
        if count
    ]


def _of_queues(found: Listings) -> list[Explained]:
    """Return the congestion losses by queue, from the listings of queues."""
    from qsctl.profiles.listings.discards import BY_KEY
    from qsctl.sim.listings.discards import Explained as Made

    lost: dict[str, list[tuple[int, str]]] = {}
    for name, queues in [
        *((client.name, client.queues) for client in found.clients),
        *((f"{each.name} {one.name}", one.queues) for each in found.neighbors for one in each.connections),
    ]:
        for queue in queues:
            if queue.discarded_messages:
                lost.setdefault(queue.queue, []).append((queue.discarded_messages, name))
    made = []
    for name, losses in lost.items():
        most, client = max(losses)
        command = READY_COMMANDS["transmit_congestion"].format(queue=name)
        total = sum(count for count, _ in losses)
        cause = BY_KEY["transmit_congestion"]
        made.append(Made(f"queue {name}", cause, total, f"{client}: {most:,}", command=command))
    return made
