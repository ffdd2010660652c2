"""The report of one run: what was lost and when, how long messages waited, how the queues filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.explained import peak_text, reason_of
from qsctl.eventlog.location import Location
from qsctl.eventlog.outcomes import LOSS_WORDS, LOSSES, column_of
from qsctl.eventlog.reader import counters_of
from qsctl.eventlog.run_folder import CONFIG_FILE, SCENARIO_FILE, Happening, RunInfo, read_run_info
from qsctl.eventlog.schema import bucket_bounds_ns
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds, format_duration
from qsctl.report.charts import Picture, depth_chart, latency_chart, picture, rate_chart
from qsctl.report.cluster_tables import cluster_tables
from qsctl.report.page import Page, Table
from qsctl.report.replay_report import replay_sentences, replay_tables
from qsctl.report.words import count_text, duration_text, listed, percent_text, utc_text
from qsctl.summary.job import summarize_run
from qsctl.summary.run_summary import QUEUE_ORDER, QueueFigures, RunSummary
from qsctl.summary.session import SparkOptions

WINDOWS_SHOWN: Final = 200
"""About as many windows as a chart can show apart."""

_SHARES_SHOWN: Final = 250
_WORST_ROWS: Final = 20


def run_page(folder: Location, options: SparkOptions | None = None) -> Page:
    """Return the page of a run folder; computed by Spark.

    Raises:
        NotFound: the folder is no run.
        Damaged: a file of it is missing, was changed, or does not belong to it.
        Unavailable: there is no Java for Spark.
    """
    info = read_run_info(folder)
    window_ns = nice_window(info.horizon_ns)
    by_queue = summarize_run(
        folder,
        by=("queue",),
        measures={"queues", "delays", "windows"},
        window_ns=window_ns,
        options=options,
    )
    by_client = summarize_run(folder, measures={"queues", "delays", "slow_subscribers"}, options=options)
    worst = worst_client(by_client.queues)
    alone = None
    if worst is not None and by_queue.level != "counters":
        alone = summarize_run(
            folder, clients=[worst], measures={"windows", "depth"}, window_ns=window_ns, options=options
        )
    lost = [each for each in by_queue.queues if each.loss_ratio > 0]
    return Page(
        title=f"Run {folder.name}: {info.scenario}",
        subtitle=_subtitle(info),
        good=not lost and not any(each.violations for each in by_queue.verdicts),
        verdict=[*replay_sentences(folder, info), *verdict(by_queue, by_client)],
        pictures=_pictures(folder, info, by_queue, by_client, alone, worst),
        tables=[
            *replay_tables(folder, info),
            _queue_table("By queue, all clients together", by_queue.queues),
            *_happening_tables(by_queue.happenings),
            *cluster_tables(by_queue.replicated_queues, by_queue.verdicts),
            _client_table(by_client),
        ],
        facts=_facts(info),
        reproduce=info.reproduce,
        configuration=checked_text(folder, info, CONFIG_FILE if info.recording else SCENARIO_FILE),
        notes=by_queue.notes,
    )


def _subtitle(info: RunInfo) -> str:
    if info.recording:
        return (
            f"service {info.recording.service}, {format_duration(info.horizon_ns)} recorded from "
            f"{utc_text(info.recording.started_at_ns)}, {count_text(info.arrived_messages)} messages"
        )
    return (
        f"{info.model}, {format_duration(info.horizon_ns)} simulated, {info.replications} replication(s), "
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
    """Return the client that lost the most, or else whose queue came nearest to its limit."""

    def badness(figures: QueueFigures) -> tuple[int, float]:
        mark, limit = figures.high_water_mark_work_units or 0, figures.max_depth_work_units or 0
        return figures.lost_messages, mark / limit if limit else 0.0

    return max(queues, key=badness).client if queues else None


def verdict(by_queue: RunSummary, by_client: RunSummary) -> list[str]:
    """Return what an operator wants to know first, in words."""
    sentences = [
        f"The cluster broke {each.rule}, {each.meaning}: {each.first}." for each in by_queue.verdicts if each.violations
    ]
    lost = [each for each in by_queue.queues if each.loss_ratio > 0]
    if lost:
        sentences.append(
            listed([f"{each.queue} lost {percent_text(each.loss_ratio)} of its messages" for each in lost]) + "."
        )
    else:
        sentences.append("No message was lost.")
    for each in lost:
        causes = [
            f"{count_text(getattr(each, column_of(outcome)))} ({LOSS_WORDS[outcome]})"
            for outcome in LOSSES
            if getattr(each, column_of(outcome))
        ]
        first = f", the first {duration_text(each.first_discard_ns)} into the run" if each.first_discard_ns else ""
        sentences.append(f"{each.queue} lost {listed(causes)}{first}.")
    full = sorted(
        {
            str(each.queue) for each in by_client.queues
            if each.max_depth_work_units and (each.high_water_mark_work_units or 0) >= each.max_depth_work_units
        }
    )  # fmt: skip
    if full:
        sentences.append(f"At least one client reached the limit of {listed(full)}.")
    waits = [each for each in by_queue.queues if each.wait_p99_ns is not None]
    if waits:
        slowest = max(waits, key=lambda each: each.wait_p99_ns or 0)
        sentences.append(f"The longest waits are in {slowest.queue}: {_waits(slowest)}.")
    slow = [row for row in by_client.tables.get("slow_subscribers", ()) if row["slow_percent_max"] > 0]
    if slow:
        most = max(slow, key=lambda row: row["slow_percent_max"])
        sentences.append(
            f"{_clients(len(slow))} could not take {'its' if len(slow) == 1 else 'their'} messages at times; the "
            f"slowest, {most['client']}, for up to {most['slow_percent_max']:.0f} % of a minute."
        )
    return sentences


def _clients(number: int) -> str:
    return "1 client" if number == 1 else f"{count_text(number)} clients"


def _waits(figures: QueueFigures) -> str:
    """Return how long the messages of a queue wait, in words; no half of them that waits "0 ns or less"."""
    if not figures.wait_p99_ns:
        return f"99 of 100 messages do not wait, the longest waits {duration_text(figures.wait_max_ns)}"
    rare = f"one in a hundred waits longer than {duration_text(figures.wait_p99_ns)}"
    if not figures.wait_p50_ns:
        return f"half of its messages do not wait, {rare}"
    return f"half of its messages wait at most {duration_text(figures.wait_p50_ns)}, {rare}"


def _pictures(
    folder: Location,
    info: RunInfo,
    by_queue: RunSummary,
    by_client: RunSummary,
    alone: RunSummary | None,
    worst: str | None,
) -> list[Picture]:
    pictures = []
    if alone is not None and worst is not None:
        pictures.append(_depth_picture(alone, by_client, worst))
    shares = latency_shares(folder, info)
    if shares:
        pictures.append(
            picture(
                "Latency by priority",
                "The share of delivered messages that waited longer than a time; both axes are logarithmic.",
                lambda: latency_chart(shares),
            )
        )
    windows = by_queue.tables.get("windows", ())
    if windows:
        for field, title, caption in (
            ("delivered_messages", "Throughput", "Delivered messages a second, all clients together."),
            ("discarded_messages", "Congestion discards", "Messages discarded a second from full queues, all clients."),
            (
                "lost_messages",
                "Other losses",
                "Messages lost a second by disconnection, refusal or expiry, all clients together.",
            ),
        ):
            rates = _rates(windows, field, info)
            if any(rate["per_second"] for rate in rates):
                pictures.append(picture(title, caption, lambda rates=rates: rate_chart(rates, "messages/s")))  # type: ignore[misc]
    return pictures


def _depth_picture(alone: RunSummary, by_client: RunSummary, worst: str) -> Picture:
    first = min((row["replication"] for row in alone.tables["depth"]), default=0)
    rows = [row for row in alone.tables["depth"] if row["replication"] == first]
    used = [each for each in by_client.queues if each.client == worst and each.high_water_mark_work_units]
    # A limit far above what was ever reached would flatten everything else.
    highest = max((figures.high_water_mark_work_units or 0 for figures in used), default=0)
    limits = [
        {"queue": figures.queue, "work_units": figures.max_depth_work_units}
        for figures in used
        if (figures.max_depth_work_units or 0) <= 2 * highest
    ]
    discards = [
        {"seconds": row["window_start_ns"] / SECOND_NS, "queue": row["queue"], "messages": row["discarded_messages"]}
        for row in alone.tables["windows"]
        if row["replication"] == first and row["discarded_messages"]
    ]
    depths = [
        {"seconds": row["at_ns"] / SECOND_NS, "queue": row["queue"], "work_units": row["depth_work_units"]}
        for row in sorted(rows, key=lambda row: row["at_ns"])
    ]
    caption = (
        f"The queues of {worst}, the client that lost the most or came nearest to a limit, in replication {first}."
    )
    if limits:
        caption += " Dashed: a queue's limit."
    if discards:
        caption += " Red marks on top: messages were discarded."
    return picture("Depth over time", caption, lambda: depth_chart(depths, limits, discards))


def latency_shares(folder: Location, info: RunInfo) -> list[dict[str, Any]]:
    """For each queue the share of delivered messages that waited longer than a time, from the histograms."""
    histograms: dict[str, dict[int, int]] = {}
    for row in counters_of(folder, info).select(["queue", "histogram_bucket", "histogram_count"]).to_pylist():
        histogram = histograms.setdefault(row["queue"], {})
        for bucket, count in zip(row["histogram_bucket"], row["histogram_count"], strict=True):
            histogram[bucket] = histogram.get(bucket, 0) + count
    shares = []
    for queue in sorted(histograms, key=lambda name: (name not in QUEUE_ORDER, name)):
        histogram = histograms[queue]
        total, left = sum(histogram.values()), sum(histogram.values())
        step = max(1, len(histogram) // _SHARES_SHOWN)
        for place, bucket in enumerate(sorted(histogram)):
            left -= histogram[bucket]
            longest = bucket_bounds_ns(bucket)[1]
            if longest >= 1000 and left and (place % step == 0 or left <= total // 100):
                shares.append({"queue": queue, "milliseconds": longest / MILLISECOND_NS, "share": left / total})
    return shares


def _rates(windows: Sequence[Any], field: str, info: RunInfo) -> list[dict[str, Any]]:
    """Return a rate in every window, also in those in which nothing happened; the mean of the replications."""
    sums: dict[tuple[str, int], int] = {}
    for row in windows:
        place = (row["queue"], row["window_start_ns"])
        sums[place] = sums.get(place, 0) + row[field]
    queues = [
        queue
        for queue in dict.fromkeys(queue for queue, _ in sums)
        if any(count for (name, _), count in sums.items() if name == queue)
    ]
    replications = len({row["replication"] for row in windows})
    window_ns = windows[0]["window_ns"]
    return [
        {
            "queue": queue,
            "seconds": start / SECOND_NS,
            "per_second": sums.get((queue, start), 0) * SECOND_NS / window_ns / replications,
        }
        for queue in queues
        for start in range(0, info.horizon_ns, window_ns)
    ]


_QUEUE_HEADINGS: Final = (
    "Queue", "Published", "Delivered", "Congestion discards", "Disconnection discards", "Lost, all causes", "Lost",
    "Still there",
    "First discard", "HWMark (work, largest)", "Max (work, largest)", "p50", "p99", "p99.9",
    "longest",
)  # fmt: skip


def _queue_table(title: str, queues: Sequence[QueueFigures]) -> Table:
    rows = [
        [
            str(each.queue),
            *map(count_text, (each.arrived_messages, each.delivered_messages, each.discarded_messages)),
            count_text(each.not_connected_messages + each.disconnected_messages),
            count_text(each.lost_messages),
            percent_text(each.loss_ratio),
            count_text(each.length_messages + each.waiting_messages),
            duration_text(each.first_discard_ns),
            *map(count_text, (each.high_water_mark_work_units, each.max_depth_work_units)),
            *map(duration_text, (each.wait_p50_ns, each.wait_p99_ns, each.wait_p999_ns, each.wait_max_ns)),
        ]
        for each in queues
    ]
    note = (
        "Counts are sums over the clients and replications; marks and limits are the largest of one client. Lost are "
        "discarded, refused and expired messages of every cause; still there are those in the queue, or waiting at "
        "their endpoint or at ingress. Waits are times in the queue of delivered messages."
    )
    return Table(title, _QUEUE_HEADINGS, rows, frozenset(range(1, len(_QUEUE_HEADINGS))), note)


def _happening_tables(happenings: Sequence[Happening]) -> list[Table]:
    """Return the events by kind; no table where nothing happened."""
    if not happenings:
        return []
    rows = [
        [
            each.event, count_text(each.count), count_text(each.clients), duration_text(each.first_ns),
            each.first_client, peak_text(each), reason_of(each),
        ]
        for each in happenings
    ]  # fmt: skip
    headings = ["Event", "Count", "Clients", "First at", "First client", "Peak", "Why"]
    return [Table("What happened", headings, rows, frozenset((1, 2, 3, 5)), "")]


def _client_table(by_client: RunSummary) -> Table:
    worst = sorted(by_client.queues, key=lambda each: (-each.lost_messages, -(each.wait_p99_ns or 0)))
    return Table(
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
