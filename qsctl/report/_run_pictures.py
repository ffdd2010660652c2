"""The charts of one run: depth of queues, waiting times, throughput, and losses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from qsctl.eventlog.location import Location
from qsctl.eventlog.reader import counters_of
from qsctl.eventlog.run_folder import RunInfo
from qsctl.eventlog.schema import bucket_bounds_ns
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.report._charts import Picture, depth_chart, latency_chart, picture, rate_chart
from qsctl.sim.scenario.scenario import Model
from qsctl.summary.run_summary import QUEUE_ORDER, RunSummary

_SHARES_SHOWN: Final = 250


def run_pictures(
    folder: Location,
    info: RunInfo,
    by_queue: RunSummary,
    by_client: RunSummary,
    alone: RunSummary | None,
    worst: str | None,
) -> list[Picture]:
    """Return the charts of a run.

    Args:
        folder: the run folder.
        info: the run's description.
        by_queue: figures by queue, over all clients.
        by_client: figures by client.
        alone: figures of one client over time; None without a message log.
        worst: name of that client.
    """
    pictures = []
    horizon_s = info.horizon_ns / SECOND_NS
    everyone = "" if is_of_service(info) else ", all clients together"
    if alone is not None and worst is not None:
        pictures.append(_depth_picture(info, alone, by_client, worst))
    shares = latency_shares(folder, info)
    if shares:
        pictures.append(
            picture(
                "Latency by queue" if is_of_service(info) else "Latency by priority",
                "The share of delivered messages that waited longer than a time; both axes are logarithmic.",
                lambda: latency_chart(shares),
            )
        )
    windows = by_queue.tables.get("windows", ())
    if windows:
        for field, title, caption in (
            ("delivered_messages", "Throughput", f"Delivered messages a second{everyone}."),
            ("discarded_messages", *_discards(info, everyone)),
            ("lost_messages", "Other losses", f"Messages lost a second {_other_causes(info)}{everyone}."),
        ):
            rates = _rates(windows, field, info)
            if any(rate["per_second"] for rate in rates):
                drawn = partial(rate_chart, rates, "messages/s", horizon_s)
                pictures.append(picture(title, caption, drawn))
    return pictures


def is_of_service(info: RunInfo) -> bool:
    """Return whether the queues belong to a queuing service, rather than to a broker's clients."""
    return bool(info.recording) or info.model in {Model.SHARED_READER_QUEUE, Model.WORLD, Model.REPLAY}


def _discards(info: RunInfo, everyone: str) -> tuple[str, str]:
    """Return the title and the caption of the chart of messages that a queue refused or discarded for lack of space."""
    if is_of_service(info):
        return "Refused samples", "Samples a second that were not accepted."
    return "Congestion discards", f"Messages discarded a second from full queues{everyone}."


def _other_causes(info: RunInfo) -> str:
    return "by expiry or spent delivery attempts" if is_of_service(info) else "by disconnection, refusal or expiry"


def _depth_picture(info: RunInfo, alone: RunSummary, by_client: RunSummary, worst: str) -> Picture:
    first = min((row["replication"] for row in alone.tables["depth"]), default=0)
    rows = [row for row in alone.tables["depth"] if row["replication"] == first]
    used = [each for each in by_client.queues if each.client == worst and each.high_water_mark_work_units]
    # A limit far above the largest depth would flatten the curves.
    highest = max((figures.high_water_mark_work_units or 0 for figures in used), default=0)
    limits = [
        {"queue": figures.queue, "work_units": figures.max_depth_work_units}
        for figures in used
        if 0 < (figures.max_depth_work_units or 0) <= 2 * highest
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
    why = "" if is_of_service(info) else ", the client that lost the most or came nearest to a limit"
    where = "" if info.replications == 1 else f", in replication {first}"
    caption = f"The queues of {worst}{why}{where}."
    if limits:
        caption += " Dashed: a queue's limit."
    if discards:
        caption += f" Red marks on top: messages were {'refused' if is_of_service(info) else 'discarded'}."
    return picture(
        "Depth over time", caption, lambda: depth_chart(depths, limits, discards, info.horizon_ns / SECOND_NS)
    )


def latency_shares(folder: Location, info: RunInfo) -> list[dict[str, Any]]:
    """Return the share of delivered messages that waited longer than a time, for each queue, from its histogram."""
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
    """Return the rate in every window, including empty ones, as the mean of the replications."""
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
