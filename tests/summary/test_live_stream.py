"""A stream over a recording that `qsctl serve --record` writes meanwhile: what it copied is what a summary counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import RunStatus
from qsctl.summary import read_runs, summarize
from tests import processes
from tests.campaigns import is_campaign
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess
from tests.patience import PATIENCE_S, eventually, make_wrappers_patient
from tests.summary.copying_query import copying, environment_of_queries

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not is_campaign(), reason="records a service for some minutes: -m campaign runs it"),
]

BURST = 20
BUSY = "Python worker failed to connect back"
"""The end of a query on a machine whose processors others have: Spark waits ten seconds for each Python that it starts.
The query begins again, as after any other end."""


class Traffic:
    """A producer that writes bursts and a consumer that acknowledges them; the last burst stays in the queue."""

    def __init__(self, domain: int) -> None:
        self.written = self.acknowledged = 0
        self._domain = domain
        self._is_over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with QueueProducer("Orders", self._domain) as producer:
                producer.wait_for_queue()
                with QueueConsumer("Orders", "S", self._domain) as consumer:
                    consumer.wait_for_queue()
                    while not self._is_over.wait(0.1):
                        self._write(producer)
                        while self.acknowledged < self.written:
                            self._acknowledge(consumer)
                self._write(producer)
        except BaseException as error:
            self._failure = error
            raise

    def _write(self, producer: QueueProducer) -> None:
        for number in range(BURST):
            producer.write(bytes(10 * number))
        producer.wait_for_acknowledgments()
        self.written += BURST

    def _acknowledge(self, consumer: QueueConsumer) -> None:
        for sample in consumer.receive(BURST):
            consumer.acknowledge(sample)
            self.acknowledged += 1
        consumer.flush()

    def end(self) -> None:
        """Stop writing, and raise what went wrong."""
        self._is_over.set()
        self._thread.join(PATIENCE_S)
        if self._failure is not None:
            raise self._failure


@contextmanager
def recorded_service(place: Path, folder: Path) -> Iterator[tuple[ServiceProcess, Traffic]]:
    """A service that records itself, and its traffic, for the time of a block."""
    domain = claim_domain()
    try:
        service = ServiceProcess(place, domain, "--record", str(folder))
        try:
            traffic = Traffic(domain)
            try:
                yield service, traffic
            finally:
                traffic.end()
        finally:
            service.end()
    finally:
        release_domain(domain)


def test_what_a_restarted_stream_copied_of_a_live_service_is_what_its_summary_counts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wrappers_patient(monkeypatch)
    folder, out, checkpoint = tmp_path / "rec", tmp_path / "out", tmp_path / "checkpoint"
    environment = environment_of_queries()
    command = copying(folder, out, checkpoint)
    parts_read = []

    def reads_until(has_read: Callable[[int], bool]) -> None:
        """Let a query copy parts until it has as many as wanted; then it is killed."""
        while not has_read(committed(checkpoint)):
            with (
                (tmp_path / "query.log").open("wb") as log,
                processes.running([*command, "500 milliseconds"], stdout=log, stderr=log, env=environment) as query,
            ):
                # A recorder closes its parts once a minute.
                assert eventually(lambda: has_read(committed(checkpoint)) or query.poll() is not None, 2 * PATIENCE_S)
                assert query.poll() is None or BUSY in (text := (tmp_path / "query.log").read_text()), text
        parts_read.append(committed(checkpoint))

    def reads_the_rest() -> bool:
        """Copy what there is, and return whether the query has ended in good order."""
        done = processes.run([*command, "now"], env=environment)
        is_done = done.stdout.strip().endswith("ended")
        assert is_done or BUSY in done.stderr, done.stderr
        return is_done

    with recorded_service(tmp_path, folder) as (service, traffic):
        reads_until(lambda parts: parts >= 1)
        first = parts_read[0]
        reads_until(lambda parts: parts > first)
        traffic.end()
        administration = Administration(service.connection())
        assert eventually(
            lambda: administration.statuses()[0].body.total.acknowledged_message_count == traffic.acknowledged
        )
        assert service.stop() == 0
    assert open_run(folder).info.status is RunStatus.COMPLETE
    for _ in range(2):  # the second time there is nothing more
        assert eventually(reads_the_rest)
    assert 0 < parts_read[0] < parts_read[1] < committed(checkpoint)

    copied, batch = spark.read.parquet(str(out)), read_runs(spark, [folder])
    columns = [name for name in copied.columns if name != "run_id"]
    assert copied.count() == batch.count() == traffic.written
    assert copied.select(columns).exceptAll(batch.select(columns)).count() == 0
    (queue,) = summarize(spark, [folder], by=["queue"], measures=["queues"]).queues
    (counted,) = (
        copied.where("outcome = 'delivered'").selectExpr("count(*) as rows", "sum(wait_ns) as wait_ns").collect()
    )
    assert queue.arrived_messages == traffic.written
    assert queue.delivered_messages == counted["rows"] == traffic.acknowledged > 0
    assert queue.wait_sum_ns == counted["wait_ns"]
    assert queue.length_messages == copied.where("outcome = 'held'").count() == BURST


def committed(checkpoint: Path) -> int:
    """Return the number of parts of the last batch that a query has committed."""
    numbers = [int(each.name) for each in checkpoint.glob("commits/[0-9]*")]
    if not numbers:
        return 0
    offset = (checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()[-1]
    return int(offset.partition('"parts":')[2].partition(",")[0].partition("}")[0])
