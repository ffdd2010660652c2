"""A recorded load as a scenario of a broker's clients: how these samples would affect a client profile.

Copied from the recording: each sample that was delivered to a consumer, with its size and the instant at which it
reached its queue, for the client that represents that consumer; for a sample with several deliveries, the consumer of
the last. Modelled by `sim.egress`: everything else. Guaranteed messages of a Solace broker are acknowledged after the
median time of the queue's consumers. Not modelled: samples that a consumer rejected or left unanswered are not sent
again, and samples that the service never sent are missing.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from qsctl.errors import InvalidInput
from qsctl.eventlog.location import Location
from qsctl.eventlog.recording.schema import Origin
from qsctl.instant import Nanoseconds
from qsctl.sim.replay._services import SampleKey, Services
from qsctl.sim.replay.recording import Recorded, RecordedArrival, read_recording
from qsctl.sim.scenario.rules.replay import short_names
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    Endpoint,
    Model,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    TraceArrivals,
    Traffic,
    default_queue_limits,
)

PORT: Final = "p1"
PROFILE: Final = "default"
_ARRIVALS: Final = "arrivals"


def egress_scenario(folder: Location, model: Model, parent: Path) -> Scenario:
    """Return the scenario of a broker with a group of clients for each queue and a client for each consumer.

    Args:
        folder: the folder of the recording.
        model: SOLACE or TIBCO.
        parent: the directory below which the arrivals of each queue are written as Parquet; existing files are
            identical.

    Raises:
        InvalidInput: no sample was delivered to a consumer, or the arrivals cannot be written.
    """
    recorded = read_recording(folder)
    place = parent / f"{folder.name}-{_ARRIVALS}-{recorded.info.fingerprint[:8]}"
    groups, traffic, endpoints = [], [], []
    for name, queue in short_names(recorded.service).items():
        consumers, rows = _sent(recorded, queue)
        if not rows:
            continue
        word = re.sub(r"[^A-Za-z0-9_.:@-]", "_", name)
        file = place / f"{word}.parquet"
        _write(file, rows)
        groups.append(ClientGroup(word, PORT, PROFILE, count=len(consumers)))
        is_solace = model is Model.SOLACE
        traffic.append(
            Traffic(word, word, TraceArrivals(str(file.absolute())), queue=Queue.G_1 if is_solace else Queue.D_1)
        )
        if is_solace:
            endpoints.append(Endpoint(word, acknowledge_delay_ns=_usual_service_ns(recorded, queue)))
    if not groups:
        raise InvalidInput(
            f"{folder}: no sample was sent to a consumer during the recording, so there are no clients to simulate",
            remedy="Record the service while consumers receive samples.",
        )
    limits = default_queue_limits()
    queues = limits if model is Model.SOLACE else {Queue.D_1: QueueLimits(limits[Queue.D_1].max_depth_work_units, 0)}
    return Scenario(
        name=f"{recorded.info.scenario}-{model}",
        model=model,
        horizon_ns=recorded.info.horizon_ns,
        ports=(Port(PORT),),
        profiles=(Profile(PROFILE, queues),),
        groups=tuple(groups),
        traffic=tuple(traffic),
        endpoints=tuple(endpoints),
        description=f"The samples of the recording {folder.name}: a group a queue, a client a consumer.",
    )


def _sent(recorded: Recorded, queue: str) -> tuple[list[int], list[tuple[Nanoseconds, int, int]]]:
    """Return the consumers of a queue, and each delivered sample: its instant of arrival, size and client."""
    last: dict[SampleKey, int] = {}
    consumers: dict[int, int] = {}
    for row in recorded.deliveries:
        if row.queue == queue:
            consumers.setdefault(row.consumer, len(consumers))
            last[row.producer, row.sequence_number] = row.consumer
    rows = [
        (max(0, row.at_ns), max(1, row.size_bytes), consumers[last[row.producer, row.sequence_number]])
        for row in _firsts(recorded.arrivals)
        if row.queue == queue and (row.producer, row.sequence_number) in last
    ]
    return list(consumers), sorted(rows)


def _firsts(arrivals: Iterable[RecordedArrival]) -> Iterable[RecordedArrival]:
    """Yield the arrivals that are not a repetition of a write, including dead letters."""
    seen: set[tuple[str, int, int]] = set()
    for row in arrivals:
        place = (row.queue, row.producer, row.sequence_number)
        if row.answer == "bounced" and row.origin == Origin.PRODUCER:
            continue
        if place not in seen:
            seen.add(place)
            yield row


def _usual_service_ns(recorded: Recorded, queue: str) -> Nanoseconds:
    served = Services(recorded, queue, 0, 0).served.values()
    known = [each.service_ns for consumer in served for each in consumer if each.is_answer]
    return round(statistics.median(known)) if known else 0


def _write(file: Path, rows: list[tuple[Nanoseconds, int, int]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.exists():
        return
    times, sizes, clients = zip(*rows, strict=True)
    table = pa.table({"time_ns": pa.array(times, pa.int64()), "size_bytes": sizes, "client": clients})
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, temporary)
        temporary.replace(file)
    except OSError as error:
        raise InvalidInput(
            f"{file}: the arrivals cannot be written: {error.strerror}", remedy="Work in a folder that can be written."
        ) from None
