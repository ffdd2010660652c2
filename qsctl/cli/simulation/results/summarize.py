"""The results of `qsctl summarize` and `qsctl simulate --spark`: the table of queues, then Spark's further figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results._cluster import cluster_blocks, cluster_fields
from qsctl.cli.simulation.results._worked import worked_blocks, worked_fields
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.eventlog.explained import peak_text, reason_of

if TYPE_CHECKING:
    from qsctl.eventlog.run_folder import Happening
    from qsctl.summary.run_summary import QueueFigures, RunSummary

KEYS = ("run_id", "replication", "client", "queue", "topic_id")
HEADINGS = {"run_id": "Run", "replication": "Replication", "client": "Client", "queue": "Queue", "topic_id": "Topic"}
MOST_LINES = 60
"""Largest number of lines of a table on the screen; every other format has all of them."""


@dataclass(frozen=True)
class SparkSummary(Result):
    """A summary computed by Spark."""

    summary: RunSummary

    field_help: ClassVar[Mapping[str, str]] = {
        "run_id": "the run; null unless --by run or several runs",
        "replication": "the replication; null unless --by replication",
        "client": "the client's name",
        "queue": "the queue's name",
        "topic_id": "the topic's number; null unless --by topic",
        "replications": "replications that the figures are summed over",
        "arrived_messages": "messages published to the queue after the warm-up, refused ones included",
        "delivered_messages": "messages that left the queue for the client; of G-1: that the client acknowledged",
        "discarded_messages": "messages discarded because the queue was full: congestion discards",
        "not_connected_messages": "direct messages that arrived while their client was disconnected",
        "disconnected_messages": "direct messages in a queue of a client that disconnected",
        "spool_refused_messages": "guaranteed messages that their full or congested endpoint refused",
        "ingress_refused_messages": "messages refused at ingress: their publisher's part of the buffers was full",
        "too_big_messages": "messages refused at ingress: larger than the broker's max-message",
        "expired_messages": "messages whose lifespan ended",
        "dead_messages": "messages whose delivery attempts were spent",
        "rejected_messages": "messages that the application of a durable queue's consumer rejected",
        "elided_messages": "messages replaced by a newer one of their topic",
        "evicted_messages": "guaranteed messages discarded from G-1 and sent again (guaranteed-overflow redeliver)",
        "redelivered_messages": "attempts after the first",
        "discard_indications": "messages that indicated a discard before them to the client",
        "delivered_bytes": "payload of the delivered messages",
        "length_messages": "messages in the queue at the end",
        "length_work_units": "work units in the queue at the end",
        "unacknowledged_messages": "of the messages in G-1 at the end those sent and not acknowledged",
        "waiting_messages": "messages waiting at the end at their endpoint, at ingress, or outside a full queue",
        "high_water_mark_work_units": "most work units in the queue since the warm-up; of several clients the largest",
        "max_depth_work_units": "the queue's limit; of several clients the largest",
        "first_discard_ns": "when the first message was discarded or refused, since the start of the run",
        "wait_sum_ns": "sum of the delivered messages' time in the queue",
        "wait_max_ns": "longest time in the queue of a delivered message",
        "observed_ns": "time observed, summed over the replications",
        "wait_p50_ns": "median time in the queue; also p90, p95, p99, p999 (99.9 %)",
        "percentile_error": "0: the percentiles are exact; else the share by which one may be too high",
        "wait_mean_ns": "mean time in the queue",
        "done_messages": "delivered messages that were acknowledged; null where nothing acknowledges a message",
        "unfinished_messages": "messages without an acknowledgment at the end: censored in the times to done",
        "done_mean_ns": "mean time to done, from arrival to acknowledgment; at least that if messages are unfinished",
        "done_p50_ns": "median time to done; also p90, p95, p99, p999; from histograms, at most 0.8 % too high",
        "done_max_ns": "longest time to done, or age of an unfinished message",
        "lost_messages": "messages that never reach their client, all causes together",
        "loss_ratio": "share of the messages with a final outcome that were lost",
        "delivered_per_second": "delivered messages a second",
        "facts": "-o json and yaml: of each run its name in run_id, scenario, seed, level, times and replications",
        "events": "-o json and yaml: events by kind: count, clients, first_ns, first_client, peak, reason",
        "replicated_queues": "-o json and yaml, of model world: masters of each replicated queue, writes answered 0",
        "verdicts": "-o json and yaml, of model world: what was made of each rule, the first violation, its replay",
        "worked_queues": "-o json and yaml, of model queue: duplicates, backlog, age of the oldest, time to drain, "
        "use of consumers, requests, cost, messages within the objective",
        "workers": "-o json and yaml, of model queue: each consumer with the time that it was there and worked",
        "tables": "-o json and yaml: the other measures, as --out writes them",
    }

    def document(self) -> Plain:
        """Return the summary under stable names."""
        summary = self.summary
        return {
            **fields_of(summary, "runs", "facts", "complete", "level", "by"),
            **fields_of(summary, "warm_up_ns", "horizon_ns", "replications", "window_ns"),
            "queues": self.rows(),
            **fields_of(summary, "tables", "notes"),
            "events": happening_rows(summary.happenings),
            **cluster_fields(summary.replicated_queues, summary.verdicts),
            **worked_fields(summary.worked_queues, summary.workers),
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per group."""
        return [figures_row(each) for each in self.summary.queues]

    def blocks(self) -> Sequence[Block]:
        """Return the tables and texts."""
        summary = self.summary
        own_names = {"wait": WORKED_WAIT} if summary.worked_queues else None
        blocks: list[Block] = list(queue_blocks(summary.queues, own_names))
        blocks += loss_blocks(summary.queues)
        blocks += waiting_blocks(summary.queues)
        blocks += happening_blocks(summary.happenings)
        several = summary.replications > 1 or len(summary.runs) > 1
        blocks += cluster_blocks(summary.replicated_queues, summary.verdicts, is_summed=several)
        blocks += worked_blocks(summary.worked_queues, summary.workers, is_summed=several)
        blocks += self._slow()
        blocks += self._connections()
        blocks += self._law()
        blocks += self._intervals()
        blocks += [TextBlock(note, "faint") for note in summary.notes]
        return blocks

    def _slow(self) -> list[Block]:
        rows = sorted(self.summary.tables.get("slow_subscribers", ()), key=lambda row: -row["slow_percent_max"])
        slow = [row for row in rows if row["slow_percent_max"] > 0 and not self.summary.worked_queues]
        return (
            [
                TextBlock(
                    f"{len(slow)} of {len(rows)} clients were blocked at times; the slowest was "
                    f"{slow[0]['client'] or 'a client'} with {slow[0]['slow_percent_max']:.0f} % of a minute "
                    f"({slow[0]['slow_percent']:.0f} % at the end)."
                )
            ]
            if slow
            else []
        )

    def _connections(self) -> list[Block]:
        rows = [row for row in self.summary.tables.get("connections", ()) if any(row[name] for name in _OF_CONNECTIONS)]
        if not rows:
            return []
        rows.sort(key=lambda row: (-row["blocked_ns"], str(row["client"]), row["replication"]))
        shown = [name for name in _OF_CONNECTIONS if any(row[name] for row in rows)]
        keys = [key for key in ("client", "replication") if len({row[key] for row in rows}) > 1 or rows[0][key]]
        cells = [
            {**{key: row[key] for key in keys},
             **{name: short_duration(row[name]) if name.endswith("_ns") else row[name] for name in shown}}
            for row in rows[:MOST_LINES]
        ]  # fmt: skip
        return [
            TableBlock(
                [
                    *(Column(key, HEADINGS[key]) for key in keys),
                    *(Column(name, _OF_CONNECTIONS[name]) for name in shown),
                ],
                cells,
                title="What happened at the clients, the most blocked first",
            ),
            *_cut(len(rows)),
        ]

    def _law(self) -> list[Block]:
        # A queue that no message leaves, as one of dead letters, has no time to compare with.
        rows = [row for row in self.summary.tables.get("littles_law", ()) if row["mean_wait_ns"] > 0]
        worst = max(rows, key=lambda row: row["relative_difference"], default=None)
        if worst is None:
            return []
        of_done = [row["done_relative_difference"] for row in rows if row["done_relative_difference"] is not None]
        done = f", what is not done and arrivals × time to done within {100 * max(of_done):.2g} %" if of_done else ""
        return [
            TextBlock(
                "Little's law: mean depth and arrivals × wait agree within "
                f"{100 * worst['relative_difference']:.2g} %{done} (what is queued at the edges makes the difference).",
                "faint",
            )
        ]

    def _intervals(self) -> list[Block]:
        rows = [
            row for row in self.summary.tables.get("intervals", ())
            if row["measure"] in {"delivered_per_second", "loss_ratio", "mean_wait_ns", "p99_wait_ns"}
        ]  # fmt: skip
        if not rows:
            return []
        keys = [key for key in KEYS if any(row[key] is not None for row in rows)]
        shown = [
            {**{key: row[key] for key in keys}, "measure": row["measure"], "value": _interval(row)}
            for row in sorted(rows, key=lambda row: tuple(str(row[key]) for key in (*keys, "measure")))
        ]
        confidence = rows[0]["confidence"]
        return [
            TableBlock(
                [*(Column(key, HEADINGS[key]) for key in keys), Column("measure", "Measure"), Column("value", "Mean")],
                shown[:MOST_LINES],
                title=f"Means over {rows[0]['replications']} replications, {100 * confidence:g} % intervals "
                f"({rows[0]['method']})",
            ),
            *(
                [TextBlock("The percentiles come from histograms and are at most 0.8 % too high.", "faint")]
                if any(row["relative_error"] for row in rows)
                else []
            ),
            *_cut(len(shown)),
        ]


_OF_CONNECTIONS = {
    "blocked_ns": "Blocked",
    "slow_periods": "Slow (times)",
    "first_slow_ns": "Slow at",
    "disconnections": "Disconnected (times)",
    "retransmissions": "Sent again (segments)",
    "time_outs": "Time-outs",
    "expired_to_dmq_messages": "Expired to DMQ (Msgs)",
    "redelivered_to_dmq_messages": "Redelivered to DMQ (Msgs)",
    "rejected_to_dmq_messages": "Rejected to DMQ (Msgs)",
}
"""Columns of the table `connections`, of which those with a value other than zero are shown."""


def _interval(row: Mapping[str, Any]) -> str:
    if row["measure"].endswith("_ns"):
        return f"{short_duration(row['mean'])} ± {short_duration(row['half_width'])}"
    return f"{row['mean']:.6g} ± {row['half_width']:.3g}"


def figures_row(figures: QueueFigures) -> dict[str, Plain]:
    """Return one group's figures under their stable names."""
    derived = fields_of(figures, "wait_mean_ns", "lost_messages", "loss_ratio", "delivered_per_second")
    return {**fields_of(figures), **derived}


def place_of(figures: QueueFigures) -> str:
    """Return a group in words, as in `desks-1 D-1`."""
    return " ".join(str(value) for key in KEYS if (value := getattr(figures, key)) is not None)


def queue_blocks(
    queues: Sequence[QueueFigures], own_names: Mapping[str, str] | None = None, *, grouped: bool = False
) -> Sequence[Block]:
    """Return the counters in the form of `show client … stats queue` [P7500], and the waits.

    For a row of several clients or replications, a heading marks whether its figure is the sum or the largest of them.
    `own_names` are a model's own headings; `grouped`: rows are of groups of clients.
    """
    keys = [key for key in KEYS if any(getattr(each, key) is not None for each in queues)]
    together = grouped or any(each.client is None or each.replications > 1 for each in queues)
    total, largest = (" Σ", " max") if together else ("", "")
    names = own_names or {}
    some = [name for name in _WHERE_THEY_ARE if any(getattr(each, name) for each in queues)]
    columns = [
        *(Column(key, HEADINGS[key]) for key in keys),
        Column("length_messages", f"Length (Msgs){total}", "right", short=f"Length{total}", rank=2),
        Column("length_work_units", f"Length (Work){total}", "right", short="Work", rank=4),
        Column("high_water_mark_work_units", f"HWMark (Work){largest}", "right", short=f"HWMark{largest}", rank=1),
        Column("max_depth_work_units", f"Max (Work){largest}", "right", short="Max", rank=4),
        Column("discards", names.get("discards", "Discards (Msgs)") + total, "right", short=f"Discards{total}"),
        Column("delivered_messages", f"Delivered (Msgs){total}", "right", short=f"Delivered{total}"),
        *(Column(name, _WHERE_THEY_ARE[name] + total, "right", rank=3) for name in some),
        Column("p50", "Wait p50", "right", rank=1),
        Column("p99", "Wait p99", "right"),
        Column("maximum", "Wait max", "right", rank=2),
        *(
            [Column("done_p50", "Done p50", "right", rank=3), Column("done_p99", "Done p99", "right", rank=2)]
            if any(each.done_messages is not None for each in queues)
            else []
        ),
        *(
            [Column("unfinished_messages", f"Unfinished (Msgs){total}", "right", short="Unfinished", rank=3)]
            if any(each.unfinished_messages for each in queues)
            else []
        ),
    ]
    rows = [
        {
            **figures_row(each),
            "discards": each.discarded_messages + each.evicted_messages,
            "p50": short_duration(each.wait_p50_ns),
            "p99": short_duration(each.wait_p99_ns),
            "maximum": short_duration(each.wait_max_ns),
            "done_p50": short_duration(each.done_p50_ns),
            "done_p99": short_duration(each.done_p99_ns),
        }
        for each in queues[:MOST_LINES]
    ]
    blocks: list[Block] = [TableBlock(columns, rows, empty="No message reached any queue."), *_cut(len(queues))]
    blocks += done_blocks(queues, names.get("wait", _WAIT))
    if together and queues:
        blocks.append(TextBlock("Σ: the sum over clients and replications; max: the largest of one of them.", "faint"))
    return blocks


_WAIT = "until a message is sent to its client"
WORKED_WAIT = "until work on a message begins"
"""The description of the wait in a broker's queue."""


def done_blocks(queues: Sequence[QueueFigures], wait: str = _WAIT) -> list[Block]:
    """Return a description of the two times, and the number of unfinished messages, if messages are acknowledged."""
    if not any(each.done_messages for each in queues):
        return []
    text = f"Wait: {wait}; done: until it is acknowledged"
    unfinished = sum(each.unfinished_messages or 0 for each in queues)
    if unfinished:
        oldest = max((each for each in queues if each.unfinished_messages), key=lambda each: each.done_max_ns or 0)
        messages = "message is" if unfinished == 1 else "messages are"
        text += (
            f"; {unfinished} {messages} not when the run ends, and count as such in the times to done, of which the "
            f"longest is at least {short_duration(oldest.done_max_ns)}"
        )
    return [TextBlock(f"{text}.", "faint")]


_WHERE_THEY_ARE = {
    "unacknowledged_messages": "Unacked (Msgs)",
    "waiting_messages": "Waiting (Msgs)",
    "ingress_refused_messages": "Refused, rate (Msgs)",
    "too_big_messages": "Refused, too big (Msgs)",
    "evicted_messages": "Evicted (Msgs)",
}
"""Columns that are shown if one of their figures is not zero."""

_LOSS_HEADINGS = {
    "discarded_messages": "Congestion",
    "not_connected_messages": "Not connected",
    "disconnected_messages": "Disconnected",
    "spool_refused_messages": "Endpoint full",
    "ingress_refused_messages": "Ingress rate",
    "too_big_messages": "Too big",
    "expired_messages": "Expired",
    "dead_messages": "Attempts spent",
    "rejected_messages": "Rejected",
}
_MOST_LOSSES = 15


_OF_ENGINES = frozenset({"inbound-post-TPS", "pre-translation", "post-translation"})
"""Queues that only an integration engine has."""


def waiting_blocks(queues: Sequence[QueueFigures]) -> list[Block]:
    """Return the queue of an integration engine with most waiting; the bottleneck is the stage after it."""
    if not any(each.queue in _OF_ENGINES for each in queues):
        return []
    total_ns = sum(each.wait_sum_ns for each in queues)
    most = max(queues, key=lambda each: each.wait_sum_ns)
    if not total_ns:
        return []
    return [
        TextBlock(
            f"Messages wait most in {place_of(most)}: {most.wait_sum_ns / max(1, most.observed_ns):.3g} of them on "
            f"average, each {short_duration(most.wait_mean_ns)}, {100 * most.wait_sum_ns / total_ns:.0f} % of all "
            "waiting."
        )
    ]


def loss_blocks(queues: Sequence[QueueFigures], own_names: Mapping[str, str] | None = None) -> list[Block]:
    """Return the losses by queue and cause, the earliest first; or a sentence that nothing was lost."""
    lost = sorted(
        (each for each in queues if each.lost_messages),
        key=lambda each: (each.first_discard_ns is None, each.first_discard_ns or 0),
    )
    if not lost:
        if any(each.has_messages for each in queues):
            return [TextBlock("No message was lost.", "good")]
        from qsctl.summary.run_summary import NOTHING_OBSERVED

        return [TextBlock(NOTHING_OBSERVED, "faint")] if queues else []
    rows: list[Row] = [
        {
            **figures_row(each),
            # Messages of a durable queue count for its clients: a fraction of the remaining ones would be meaningless.
            "share": "" if each.max_depth_work_units == 0 else f"{100 * each.loss_ratio:.3g} %",
            "first": short_duration(each.first_discard_ns),
        }
        for each in lost[:_MOST_LOSSES]
    ]
    keys = [key for key in KEYS if any(getattr(each, key) is not None for each in lost)]
    causes = [name for name in _LOSS_HEADINGS if any(getattr(each, name) for each in lost)]
    columns = [
        *(Column(key, HEADINGS[key]) for key in keys),
        Column("lost_messages", "Lost (Msgs)", "right"),
        *([Column("share", "Share", "right")] if any(row["share"] for row in rows) else []),
        *(Column(name, (own_names or {}).get(name, _LOSS_HEADINGS[name]), "right") for name in causes),
        Column("first", "First discard at", "right"),
        Column("discard_indications", "Indications", "right"),
    ]
    blocks: list[Block] = [TableBlock(columns, rows, title="Losses by queue and cause, the earliest first")]
    if len(lost) > _MOST_LOSSES:
        blocks.append(TextBlock(f"… and {len(lost) - _MOST_LOSSES} more.", "faint"))
    return blocks


def happening_rows(happenings: Sequence[Happening]) -> list[Row]:
    """Return one row per kind of event."""
    return [
        {
            **fields_of(each, "event", "count", "clients", "first_ns"),
            "first_client": each.first_client or None,
            "peak": each.peak,
            "reason": reason_of(each),
        }
        for each in happenings
    ]


def happening_blocks(happenings: Sequence[Happening]) -> list[Block]:
    """Return the events that occurred, one line each, with the reason."""
    if not happenings:
        return []
    rows: list[Row] = [
        {
            **row,
            "first": short_duration(each.first_ns),
            "clients": each.clients or "",
            "client": each.first_client,
            "largest": peak_text(each),
        }
        for row, each in zip(happening_rows(happenings), happenings, strict=True)
    ]
    columns = [
        Column("event", "Event"),
        Column("count", "Count", "right"),
        Column("clients", "Clients", "right"),
        Column("first", "First at", "right"),
        Column("client", "First client"),
        Column("largest", "Peak", "right"),
        Column("reason", "Why"),
    ]
    return [TableBlock(columns, rows, title="What happened")]


def _cut(lines: int) -> list[Block]:
    if lines <= MOST_LINES:
        return []
    return [TextBlock(f"… and {lines - MOST_LINES} more rows: use -o csv, or group by less with --by.", "faint")]
