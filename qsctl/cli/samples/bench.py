"""`qsctl bench`: measure rates and latencies of a queue under load."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.location import seconds
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples._bench_results import Benchmark
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.client.bench.load import BenchLoad
    from qsctl.client.bench.measured import BenchResult
    from qsctl.resource import ResourceIdentifier

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

FINISH_S: Final = 60.0
"""Longest wait for a recorder to finish its folder, in seconds; after that it finishes later."""

SIZE_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class LoadOptions(OptionGroup):
    """The options of the load: the samples to write and consume."""

    producers: Annotated[int, typer.Option(min=1, max=64, help="Number of producers; over DDS a process each.")] = 1
    consumers: Annotated[int, typer.Option(min=1, max=64, help="Number of consumers; over DDS a process each.")] = 1
    size: Annotated[int, typer.Option(min=8, max=SIZE_MAX, help="Size of a sample's content in bytes.")] = 256
    rate: Annotated[
        float,
        typer.Option(min=0, metavar="N", help="Samples a second of all producers together; 0: as many as possible."),
    ] = 0.0
    duration: Annotated[str, typer.Option(help="Measured time, a duration such as 30s.")] = "10s"
    warm_up: Annotated[str, typer.Option(help="Time before it that counts for nothing, a duration such as 2s.")] = "2s"
    window: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Largest number of unacknowledged samples of a producer.")
    ] = 1000
    persistent: Annotated[bool, typer.Option("--persistent", help="Make the queue of the benchmark persistent.")] = (
        False
    )

    def load(self) -> BenchLoad:
        """Return the load that the options describe.

        Raises:
            UsageError: a time is not a duration, the measured time is zero, or both exceed a day.
        """
        from qsctl.client.bench.load import BenchLoad

        duration_s, warm_up_s = seconds(self.duration, "--duration"), seconds(self.warm_up, "--warm-up")
        if not 0 < duration_s + warm_up_s <= 86_400 or not duration_s:
            raise UsageError("--duration and --warm-up are out of range", remedy="Give at most a day, as in 30s.")
        return BenchLoad(self.producers, self.consumers, self.size, self.rate, duration_s, warm_up_s, self.window)


@COMMANDS.command(
    "bench",
    examples=(
        "qsctl bench  # the embedded service, as fast as it is",
        "qsctl bench --service dds:57 --producers 2 --consumers 4 --rate 20000 --duration 30s",
        "qsctl bench --service dds:57 --persistent --rate 5000 --min-rate 4900 --max-p99 20ms -o json",
        "qsctl bench --service dds:57 --rate 2000 --record bench-run && qsctl report bench-run",
    ),
)
def bench(
    queue: Annotated[
        str,
        typer.Argument(
            metavar="[QUEUE]",
            help="Queue to use, which has to be empty; left out: one that is created and deleted.",
            show_default=False,
        ),
    ] = "",
    *,
    load: LoadOptions,
    min_rate: Annotated[
        float, typer.Option(min=0, metavar="N", help="Least number of samples a second that are received; 0: any.")
    ] = 0.0,
    max_p99: Annotated[
        str, typer.Option(metavar="DURATION", help="Largest 99th percentile of the latency to the consumer.")
    ] = "infinite",
    record: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Run folder in which the service records the benchmark; for reports."),
    ] = None,
    service: TargetOptions,
) -> Benchmark:
    """Put a load on a queue and measure rates and latencies, over DDS or of the embedded service.

    A latency runs from the instant at which a sample was due, so that what waits for a slow service counts. Percentiles
    are known to a thousandth. Over DDS producers and consumers are processes of this machine. Exits
    with 1 when --min-rate or --max-p99 does not hold.
    """
    from qsctl.client.bench.measured import Latencies
    from qsctl.core.admin.resolve import short_name

    wanted = load.load()
    highest_us = seconds(max_p99, "--max-p99") * 1e6
    Latencies()  # before a queue is made
    with service.open() as administration:
        resource, is_ours = _queue(administration, queue, persistent=load.persistent)
        try:
            measured = _measured(administration, resource, wanted, service, record)
        finally:
            if is_ours:
                administration.delete_queue(resource, idempotent=True)
    counts = measured.counts
    rate = counts.received_in_time / wanted.duration_s
    p99_us = measured.to_consumer.figures()["p99_us"]
    failures = []
    if rate < min_rate:
        failures.append(f"{rate:,.0f} samples/s were received, wanted are {min_rate:g}")
    if p99_us > highest_us:
        failures.append(f"the 99th percentile to the consumer is {p99_us:,.0f} µs, wanted is {max_p99}")
    return Benchmark(
        load={
            "service": service.service,
            "queue_name": short_name(resource),
            "producers": wanted.producer_count,
            "consumers": wanted.consumer_count,
            "size_bytes": wanted.size_bytes,
            "per_second": wanted.per_second,
            "duration_s": wanted.duration_s,
            "warm_up_s": wanted.warm_up_s,
            "window": wanted.window_count,
            "persistent": load.persistent,
        },
        counts={
            "written": counts.written,
            "accepted": counts.accepted,
            "rejected": counts.rejected,
            "unanswered": counts.unanswered,
            "received": counts.received,
            "redelivered": counts.redelivered,
            "missing": max(0, counts.accepted - counts.received),
            "overdue": counts.overdue,
        },
        rates={
            "written_per_second": round(counts.written_in_time / wanted.duration_s, 1),
            "received_per_second": round(rate, 1),
            "received_megabytes_per_second": round(rate * wanted.size_bytes / 1e6, 3),
        },
        to_acknowledgment=measured.to_acknowledgment.figures(),
        to_consumer=measured.to_consumer.figures(),
        failures=tuple(failures),
        run_folder="" if record is None else str(record),
    )


def _queue(administration: Administration, named: str, *, persistent: bool) -> tuple[ResourceIdentifier, bool]:
    """Return the queue to use, and whether it was created for the benchmark.

    Raises:
        UsageError: the named queue holds samples, or --persistent is given, which is for a created queue.
    """
    from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
    from qsctl.resource import ResourceKind

    if named:
        if persistent:
            raise UsageError(
                f"--persistent applies to a queue that the benchmark creates, and {named} is given",
                remedy="Leave out --persistent, or the queue.",
            )
        resource = administration.queue_named(named)
        if administration.messages(resource, count=1):
            raise UsageError(f"{named} holds samples", remedy="Name an empty queue: its samples would be consumed.")
        return resource, False
    kind = PersistenceKind.PERSISTENT if persistent else PersistenceKind.VOLATILE
    name = f"bench-{os.getpid()}".replace("-", "_")
    settings = SharedReaderQueueSettings(name, name, type_name="DDS::Octets", persistence=PersistenceSettings(kind))
    subscriber = administration.subscriber_named("")
    administration.create_queue(subscriber, settings)
    return subscriber.child(ResourceKind.SHARED_READER_QUEUE, name), True


def _measured(
    administration: Administration,
    queue: ResourceIdentifier,
    load: BenchLoad,
    service: TargetOptions,
    record: Path | None,
) -> BenchResult:
    from qsctl.core.admin.resolve import short_name

    connection = administration.connection
    if not service.service.startswith("dds:"):
        from qsctl.client.bench.embedded import run_embedded

        (data, *_) = administration.queue_data(queue)
        with _recorded(administration, record):
            participant = queue.names[0][1]
            return run_embedded(connection, participant, data.body.topic_name, short_name(queue), load)
    from qsctl.client.bench.over_dds import run_over_dds
    from qsctl.client.bench.peers import BenchPlace
    from qsctl.client.dds_connection import DdsConnection
    from qsctl.client.dds_location import parse_dds_location

    assert isinstance(connection, DdsConnection)
    topic_name, subscriber, domain_id = connection.place_of(short_name(queue))
    _, settings = parse_dds_location(service.service.partition(":")[2])
    place = BenchPlace(topic_name, subscriber, domain_id, settings, seconds(service.timeout, "--timeout"))
    with _recorded(administration, record):
        return run_over_dds(place, load)


@contextmanager
def _recorded(administration: Administration, folder: Path | None) -> Iterator[None]:
    """Let the service record into a folder during the block; do nothing if it is None."""
    if folder is None:
        yield
        return
    from qsctl.cli.administer.recording_options import MAX_DEFAULT, SAMPLE_DEFAULT, RecordLevel, start_command

    administration.start_recording(start_command(folder.absolute(), RecordLevel.MESSAGES, MAX_DEFAULT, SAMPLE_DEFAULT))
    try:
        yield
    finally:
        states = administration.stop_recording()
        deadline = time.monotonic() + FINISH_S
        while not all(each.body.is_complete for each in states) and time.monotonic() < deadline:
            time.sleep(0.1)
            states = administration.recordings()
