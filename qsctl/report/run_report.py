"""The report page of one run: losses and their time, waiting times, and the depth of queues."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.explained import peak_text, reason_of
from qsctl.eventlog.location import Location
from qsctl.eventlog.outcomes import LOSS_WORDS, LOSSES, Outcome, column_of
from qsctl.eventlog.run_folder import CONFIG_FILE, SCENARIO_FILE, Happening, RunInfo, read_run_info
from qsctl.instant import MILLISECOND_NS, Nanoseconds, format_duration
from qsctl.report._cluster_tables import cluster_tables
from qsctl.report._engine_report import engine_parts
from qsctl.report._replay_report import replay_sentences, replay_tables
from qsctl.report._run_pictures import is_of_service, run_pictures
from qsctl.report._words import count_text, duration_text, listed, percent_text, replications_text, utc_text
from qsctl.report._worked_tables import worked_tables
from qsctl.report.page import Page, PageTable
from qsctl.sim.scenario.scenario import Model
from qsctl.summary.job import summarize_run
from qsctl.summary.run_summary import NOTHING_OBSERVED, QueueFigures, RunSummary
from qsctl.summary.spark.session import SparkOptions

WINDOWS_SHOWN: Final = 200
"""Largest number of windows in a chart, about as many as can be distinguished."""

_WORST_ROWS: Final = 20
_REPLICATIONS_APART: Final = 100
"""Number of replications above which windows are made longer, since the number of rows grows with both."""
_MOST_ROWS: Final = 1_000_000
"""Largest number of rows of a table over time, for windows of all queues and replications."""


def run_page(folder: Location, options: SparkOptions | None = None) -> Page:
    """Return the report page of a run.

    Args:
        folder: the run folder.
        options: settings of Spark; None: the figures are computed in this process if the run is short enough
            (`summary.job`).

    Raises:
        NotFound: the folder is not a run.
        Damaged: a file of it is missing, was changed, or does not belong to it.
        Unavailable: Spark is needed, and no Java is installed.
    """
    info = read_run_info(folder)
    window_ns = nice_window(info.horizon_ns * max(1, len(info.done) // _REPLICATIONS_APART))
    by_queue = summarize_run(
        folder,
        by=("queue",),
        measures={"queues", "delays", "windows"},
        window_ns=window_ns,
        options=options,
        most_rows=_MOST_ROWS,
    )
    by_client = summarize_run(folder, measures={"queues", "delays", "slow_subscribers", "connections"}, options=options)
    worst = worst_client(by_client.queues)
    alone = None
    if worst is not None and by_queue.level != "counters":
        alone = summarize_run(
            folder,
            clients=[worst],
            measures={"windows", "depth"},
            window_ns=window_ns,
            options=options,
            most_rows=_MOST_ROWS,
        )
    lost = [each for each in by_queue.queues if _lost(info, each)]
    growing = growing_queues(info, by_queue)
    clients = {each.client for each in by_client.queues}
    is_engine = info.model == Model.INTEGRATION
    engine_pictures, engine_tables, engine_sentences = (
        engine_parts(folder, info, options) if is_engine else ([], [], [])
    )
    return Page(
        title=f"Run {folder.name}: {info.scenario}",
        subtitle=_subtitle(info),
        good=not lost and not growing and not any(each.violations for each in by_queue.verdicts),
        verdict=[*replay_sentences(folder, info), *verdict(info, by_queue, by_client), *engine_sentences],
        pictures=[*engine_pictures, *run_pictures(folder, info, by_queue, by_client, alone, worst)],
        tables=[
            *replay_tables(folder, info),
            *engine_tables,
            _queue_table(info, by_queue.queues),
            *loss_tables(info, by_queue.queues),
            *_happening_tables(info, by_queue.happenings),
            *cluster_tables(by_queue.replicated_queues, by_queue.verdicts),
            *worked_tables(by_queue.worked_queues, by_queue.workers),
            *([] if is_of_service(info) and len(clients) < 2 else [_client_table(by_client)]),
            *connection_tables(by_client),
        ],
        facts=_facts(info),
        reproduce=info.reproduce,
        configuration=checked_text(folder, info, CONFIG_FILE if info.recording else SCENARIO_FILE),
        notes=by_queue.notes,
    )


def _subtitle(info: RunInfo) -> str:
    if info.recording:
        return (
            f"service {info.recording.service}, {duration_text(info.horizon_ns)} recorded from "
            f"{utc_text(info.recording.started_at_ns)}, {count_text(info.arrived_messages)} messages"
        )
    return (
        f"{info.model}, {format_duration(info.horizon_ns)} simulated, {replications_text(info.replications)}, "
        f"seed {info.seed}, {count_text(info.arrived_messages)} messages"
    )


def nice_window(horizon_ns: Nanoseconds) -> Nanoseconds:
    """Return the shortest of 1, 2, 5 × 10^n ms that makes at most `WINDOWS_SHOWN` windows of a run."""
    scale = MILLISECOND_NS
    while True:
        for step in (1, 2, 5):
            if horizon_ns <= WINDOWS_SHOWN * step * scale:
                return step * scale
        scale *= 10


def worst_client(queues: Sequence[QueueFigures]) -> str | None:
    """Return the client that lost the most; without losses, the one whose queue came nearest to its limit."""

    def badness(figures: QueueFigures) -> tuple[int, float]:
        mark, limit = figures.high_water_mark_work_units or 0, figures.max_depth_work_units or 0
        return figures.lost_messages, mark / limit if limit else 0.0

    return max(queues, key=badness).client if queues else None


def verdict(info: RunInfo, by_queue: RunSummary, by_client: RunSummary) -> list[str]:
    """Return the main findings on a run as sentences for an operator."""
    sentences = [
        f"The cluster broke {each.rule}, {each.meaning}: {each.first}." for each in by_queue.verdicts if each.violations
    ]
    tested = [each for each in by_queue.verdicts if each.checked]
    if tested and not sentences:
        sentences.append(f"The cluster kept all {len(tested)} rules that the run put to the test.")
    lost = [each for each in by_queue.queues if _lost(info, each)]
    growing = growing_queues(info, by_queue)
    if lost:
        sentences.append(
            listed([f"{each.queue} lost {percent_text(_lost(info, each))} of its messages" for each in lost]) + "."
        )
    elif not any(each.has_messages for each in by_queue.queues):
        sentences.append(NOTHING_OBSERVED)
    elif growing:
        sentences.append("No message was lost, so far.")
    else:
        sentences.append("No message was lost.")
    sentences += [
        f"{each.queue} grows all the time: {count_text(each.half)} messages were not done at half of the run, "
        f"{count_text(each.end)} at its end. More comes than is taken: no figure of its times lasts, and a limit would "
        "be reached."
        for each in growing
    ]
    if is_of_world(info):
        sentences += [
            f"{each.queue} refused {percent_text(each.discarded_messages / max(1, each.arrived_messages))} of the "
            "writes, by an answer of 0 each: these are not lost, their producers know."
            for each in by_queue.queues
            if each.discarded_messages
        ]
    for each in lost:
        causes = [
            f"{count_text(getattr(each, column_of(outcome)))} ({_cause(info, outcome)})"
            for outcome in LOSSES
            if getattr(each, column_of(outcome)) and not (is_of_world(info) and outcome is Outcome.DISCARDED)
        ]
        first = f", the first {duration_text(each.first_discard_ns)} into the run" if each.first_discard_ns else ""
        sentences.append(f"{each.queue} lost {listed(causes)}{first}.")
    full = sorted(
        {
            str(each.queue) for each in by_client.queues
            if each.max_depth_work_units and (each.high_water_mark_work_units or 0) >= each.max_depth_work_units
        }
    )  # fmt: skip
    if full and is_of_service(info):
        sentences.append(f"{listed(full)} reached {'its' if len(full) == 1 else 'their'} limit.")
    elif full:
        sentences.append(f"At least one client reached the limit of {listed(full)}.")
    waits = [each for each in by_queue.queues if each.wait_p99_ns is not None]
    if waits:
        slowest = max(waits, key=lambda each: each.wait_p99_ns or 0)
        sentences.append(f"The longest waits are in {slowest.queue}: {_waits(slowest)}.")
    slow = [row for row in by_client.tables.get("slow_subscribers", ()) if row["slow_percent_max"] > 0]
    if (
        slow and not is_of_service(info) and not by_queue.worked_queues
    ):  # a service's samples wait for many consumers, not for one slow subscriber
        most = max(slow, key=lambda row: row["slow_percent_max"])
        sentences.append(
            f"{_clients(len(slow))} could not take {'its' if len(slow) == 1 else 'their'} messages at times; the "
            f"slowest, {most['client']}, for up to {most['slow_percent_max']:.0f} % of a minute."
        )
    return sentences


def is_of_world(info: RunInfo) -> bool:
    """Return whether the run is a simulated replication cluster, which answers the writes that it refuses."""
    return info.model == Model.WORLD


def _lost(info: RunInfo, figures: QueueFigures) -> float:
    """Return the fraction of a queue's messages that were lost; writes that a cluster refused do not count."""
    if not is_of_world(info):
        return figures.loss_ratio
    lost = figures.lost_messages - figures.discarded_messages
    return lost / max(1, lost + figures.delivered_messages + figures.elided_messages)


@dataclass(frozen=True, slots=True)
class Growing:
    """A growing queue: its unfinished messages at half of the observation, and at the end."""

    queue: str
    half: float
    end: float


_GROWTH: Final = 1.15
"""Least ratio of each quarter's mean backlog to that of the previous quarter, in a queue that grows."""
_BEHIND: Final = 0.02
"""Fraction of the second half's arrivals that must at least be added to the backlog, in a queue that grows."""
_FEW: Final = 20


def growing_queues(info: RunInfo, by_queue: RunSummary) -> list[Growing]:
    """Return the queues whose backlog grows throughout the run, in the mean of the replications.

    The backlog is the number of messages that arrived and have no outcome yet. It grows if its mean rises from each
    quarter of the run to the next, and the second half adds a clear fraction of its arrivals. Without a message log,
    which has the windows of time, the result is empty.
    """
    windows = by_queue.tables.get("windows", ())
    if not windows:
        return []
    replications = len({row["replication"] for row in windows})
    window_ns = windows[0]["window_ns"]
    count = max(1, -(-info.horizon_ns // window_ns))
    changes: dict[str, list[list[float]]] = {}
    for row in windows:
        place = changes.setdefault(row["queue"], [[0.0, 0.0] for _ in range(count)])
        at = min(count - 1, row["window_start_ns"] // window_ns)
        gone = sum(
            row[name] for name in ("delivered_messages", "discarded_messages", "elided_messages", "lost_messages")
        )
        place[at][0] += row["arrived_messages"] / replications
        place[at][1] += (row["arrived_messages"] - gone) / replications
    found = []
    for queue, rows in changes.items():
        backlog = list(itertools.accumulate(change for _, change in rows))
        quarters = [backlog[count * at // 4 : count * (at + 1) // 4] for at in range(4)]
        if not all(quarters):
            continue
        means = [sum(each) / len(each) for each in quarters]
        half, end = backlog[count // 2 - 1], backlog[-1]
        came = sum(arrived for arrived, _ in rows[count // 2 :])
        rises = all(after > _GROWTH * before for before, after in itertools.pairwise(means))
        if rises and end - half > max(_FEW, _BEHIND * came):
            found.append(Growing(queue, half, end))
    return found


def _cause(info: RunInfo, outcome: Outcome) -> str:
    is_refused = outcome is Outcome.DISCARDED and is_of_service(info)
    return "refused by the queue" if is_refused else LOSS_WORDS[outcome]


def _clients(number: int) -> str:
    return "1 client" if number == 1 else f"{count_text(number)} clients"


def _waits(figures: QueueFigures) -> str:
    """Return the waiting time of a queue's messages as text, without a median where half of them do not wait."""
    if not figures.wait_p99_ns:
        return f"99 of 100 messages do not wait, the longest waits {duration_text(figures.wait_max_ns)}"
    rare = f"one in a hundred waits longer than {duration_text(figures.wait_p99_ns)}"
    if not figures.wait_p50_ns:
        return f"half of its messages do not wait, {rare}"
    return f"half of its messages wait at most {duration_text(figures.wait_p50_ns)}, {rare}"


_QUEUE_HEADINGS: Final = (
    "Queue", "Published", "Delivered", "Congestion discards", "Disconnection discards", "Lost, all causes", "Lost",
    "Still there",
    "First discard", "HWMark (work, largest)", "Max (work, largest)", "p50", "p99", "p99.9",
    "longest", "done p50", "done p99", "unfinished",
)  # fmt: skip
_ONLY_WHERE_THERE_ARE_SOME: Final = frozenset({3, 4, 7, 8, 15, 16, 17})
"""Columns that are shown only if they have a value: a table with all of them is wider than most windows."""


def _queue_table(info: RunInfo, queues: Sequence[QueueFigures]) -> PageTable:
    rows = [
        [
            str(each.queue),
            *map(count_text, (each.arrived_messages, each.delivered_messages, each.discarded_messages)),
            count_text(each.not_connected_messages + each.disconnected_messages),
            count_text(each.lost_messages),
            percent_text(_lost(info, each)),
            count_text(each.length_messages + each.waiting_messages),
            duration_text(each.first_discard_ns),
            *map(count_text, (each.high_water_mark_work_units, each.max_depth_work_units)),
            *map(duration_text, (each.wait_p50_ns, each.wait_p99_ns, each.wait_p999_ns, each.wait_max_ns)),
            *map(duration_text, (each.done_p50_ns, each.done_p99_ns)),
            count_text(each.unfinished_messages),
        ]
        for each in queues
    ]
    empty = {at for at in _ONLY_WHERE_THERE_ARE_SOME if all(row[at] in {"0", "–"} for row in rows)}
    shown = [at for at in range(len(_QUEUE_HEADINGS)) if at not in empty]
    headings = [_QUEUE_HEADINGS[at] for at in shown]
    rows = [[row[at] for at in shown] for row in rows]
    if is_of_service(info):
        title, sums = "By queue", "Counts are sums over the replications, marks the largest of one. "
        sums = "" if info.replications == 1 else sums
        waits = _TIMES.format("samples")
        left = "Lost are samples that were refused, expired, or spent their delivery attempts. "
        headings = [heading.replace(", largest", "").replace("Congestion discards", "Refused") for heading in headings]
    else:
        title, sums = (
            "By queue, all clients together",
            ("Counts are sums over the clients and replications; marks and limits are the largest of one client. "),
        )
        left = (
            "Lost are discarded, refused and expired messages of every cause; still there are those in the queue, or "
            "waiting at their endpoint or at ingress. "
        )
        waits = _TIMES.format("messages")
    return PageTable(title, headings, rows, frozenset(range(1, len(headings))), f"{sums}{left}{waits}")


_TIMES: Final = (
    "Percentiles are of the time in the queue of delivered {0}, until they were sent; done: until they were "
    "acknowledged, where unfinished {0} count as such."
)
_REASONS_OF_A_SERVICE: Final = {
    "connected": "a consumer joined",
    "disconnected": "a consumer left: what it held went back to its queue",
    "returned": "a consumer rejected a sample, was silent, or left",
}


def _happening_tables(info: RunInfo, happenings: Sequence[Happening]) -> list[PageTable]:
    """Return the table of events by kind; an empty list if no event occurred."""
    if not happenings:
        return []
    rows = [
        [
            each.event, count_text(each.count), count_text(each.clients), duration_text(each.first_ns),
            each.first_client, peak_text(each),
            _REASONS_OF_A_SERVICE.get(each.event, reason_of(each)) if is_of_service(info) else reason_of(each),
        ]
        for each in happenings
    ]  # fmt: skip
    headings = ["Event", "Count", "Clients", "First at", "First client", "Peak", "Why"]
    return [PageTable("What happened", headings, rows, frozenset((1, 2, 3, 5)), "")]


def loss_tables(info: RunInfo, queues: Sequence[QueueFigures]) -> list[PageTable]:
    """Return the table of lost messages by cause; an empty list if fewer than two causes occurred."""
    lost = [each for each in queues if _lost(info, each)]
    causes = [outcome for outcome in LOSSES if any(getattr(each, column_of(outcome)) for each in lost)]
    if len(causes) < 2:
        return []
    rows = [[str(each.queue), *(count_text(getattr(each, column_of(cause))) for cause in causes)] for each in lost]
    headings = ["Queue", *(_cause(info, cause).capitalize() for cause in causes)]
    return [PageTable("Lost messages by cause", headings, rows, frozenset(range(1, len(headings))), "")]


_CONNECTION_HEADINGS: Final = {
    "blocked_ns": "Blocked",
    "slow_periods": "Slow (times)",
    "first_slow_ns": "Slow at",
    "disconnections": "Disconnected (times)",
    "retransmissions": "Sent again (segments)",
    "time_outs": "Time-outs",
    "expired_to_dmq_messages": "Expired, to the dead message queue",
    "redelivered_to_dmq_messages": "Redelivery limit, to the dead message queue",
    "rejected_to_dmq_messages": "Rejected, to the dead message queue",
}


def connection_tables(by_client: RunSummary) -> list[PageTable]:
    """Return the table of connection events by client, longest blocked first; an empty list if no event occurred."""
    found = [row for row in by_client.tables.get("connections", ()) if any(row[name] for name in _CONNECTION_HEADINGS)]
    if not found:
        return []
    found.sort(key=lambda row: (-row["blocked_ns"], row["client"], row["replication"]))
    shown = [name for name in _CONNECTION_HEADINGS if any(row[name] for row in found)]
    several = len({row["replication"] for row in found}) > 1
    rows = [
        [row["client"], *([str(row["replication"])] if several else []),
         *(duration_text(row[name]) if name.endswith("_ns") else count_text(row[name]) for name in shown)]
        for row in found[:_WORST_ROWS]
    ]  # fmt: skip
    headings = ["Client", *(["Replication"] if several else []), *(_CONNECTION_HEADINGS[name] for name in shown)]
    note = (
        "Blocked: there was data to send, which its window, its receive buffer or its transmit queue had no room for. "
        f"{min(_WORST_ROWS, len(found))} of {len(found)}; `qsctl summarize` lists all of them."
    )
    return [PageTable("What happened at the clients", headings, rows, frozenset(range(1, len(headings))), note)]


def _client_table(by_client: RunSummary) -> PageTable:
    worst = sorted(by_client.queues, key=lambda each: (-each.lost_messages, -(each.wait_p99_ns or 0)))
    return PageTable(
        "The clients that fared worst",
        ["Client", "Queue", "Delivered", "Lost", "Length (work)", "HWMark (work)", "Max (work)", "p99"],
        [
            [
                str(each.client), str(each.queue), count_text(each.delivered_messages),
                count_text(each.lost_messages), count_text(each.length_work_units),
                count_text(each.high_water_mark_work_units), count_text(each.max_depth_work_units),
                duration_text(each.wait_p99_ns),
            ]
            for each in worst[:_WORST_ROWS]
        ],
        frozenset(range(2, 8)),
        f"{min(_WORST_ROWS, len(worst))} of {len(worst)} pairs of client and queue; "
        "`qsctl summarize` lists all of them.",
    )  # fmt: skip


def _facts(info: RunInfo) -> dict[str, str]:
    if info.recording:
        recording = info.recording
        return {
            "Service": recording.service,
            "Recorded from": utc_text(recording.started_at_ns),
            "Duration": format_duration(info.horizon_ns),
            "Samples with rows": percent_text(recording.sample_share),
            "Processes": str(recording.processes),
            "Log level": info.log_level,
            "State": info.status.value,
            "End": f"{recording.end or 'not yet'}{': ' * bool(recording.end_text)}{recording.end_text}",
            "Fingerprint": info.fingerprint or "–",
            "Version": info.version,
        }
    facts = {
        "Scenario": info.scenario,
        "Model": info.model,
        "Seed": str(info.seed),
        "Simulated": format_duration(info.horizon_ns),
        "Warm-up": format_duration(info.warm_up_ns),
        "Replications": str(info.replications),
        "Log level": info.log_level,
        "State": info.status.value,
        "Fingerprint": info.fingerprint or "–",
        "Version": info.version,
    }
    return facts | {f"Set {path}": value for path, value in info.overrides.items()}
