"""Three services as processes that replicate each other's queues, and programs whose samples are counted."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.errors import NoAnswer
from qsctl.identity import SampleIdentity
from tests.dds.service_process import ServiceProcess
from tests.patience import PATIENCE_S

MASTER_TIMEOUT_MS = int(os.environ.get("QSCTL_TEST_MASTER_TIMEOUT_MS", "500"))

SERVICE = """
<service_qos>
  <shared_reader_queue_replication>
    <replication_settings>
      <queue_instances>{instances}</queue_instances>
      <master_timeout><sec>{sec}</sec><nanosec>{nanosec}</nanosec></master_timeout>
      <sample_timeout><sec>9</sec><nanosec>0</nanosec></sample_timeout>
      <synchronize_consumer_assignment>true</synchronize_consumer_assignment>
    </replication_settings>
  </shared_reader_queue_replication>
</service_qos>
<persistence_settings><filesystem><synchronization>FULL</synchronization></filesystem></persistence_settings>
"""

QUEUES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos>
    <persistence><kind>PERSISTENT</kind></persistence>
    <redelivery><max_delivery_retries>100</max_delivery_retries></redelivery>
  </queue_qos>
</shared_reader_queue>
<shared_reader_queue name="Quick" session="s">
  <topic_name>Quick</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><redelivery><max_delivery_retries>100</max_delivery_retries></redelivery></queue_qos>
</shared_reader_queue>
"""

_ROLE = re.compile(r"timestamp='([^']+)'.*event='role'.*queue='([^']+)' role='(\w+)' epoch=(\d+)")

REPLICATED_SERVICE = """
<replication_settings>
  <queue_instances>{instances}</queue_instances>
  <master_timeout><sec>{sec}</sec><nanosec>{nanosec}</nanosec></master_timeout>
</replication_settings>
""" + SERVICE.replace(
    "<service_qos>", "<service_qos><persistence><kind>PERSISTENT</kind></persistence><configuration_replication/>"
)
"""The configuration is replicated, in the domain of the queues."""


class Cluster:
    """The services `Cluster_1_A`, `Cluster_1_B` and so on, each in a directory of its own."""

    def __init__(
        self,
        directory: Path,
        domain: int,
        *arguments: str,
        instances: int = 3,
        prepare: Callable[[Path], None] = lambda where: None,
        **parts: str,
    ) -> None:
        self.domain = domain
        self._prepare = prepare
        self.services: dict[str, ServiceProcess] = {}
        self._parts = {"name": "Cluster_1", "queues": QUEUES} | parts
        self._parts["service"] = parts.get("service", SERVICE).format(
            instances=instances, sec=MASTER_TIMEOUT_MS // 1000, nanosec=MASTER_TIMEOUT_MS % 1000 * 1_000_000
        )
        with contextlib.ExitStack() as stack:
            prefix = self._parts.pop("prefix", "Cluster_1")
            for letter in "ABCDE"[:instances]:
                name = f"{prefix}_{letter}"
                where = directory / name
                where.mkdir()
                prepare(where)
                service = ServiceProcess(where, domain, "--app-name", name, *arguments, **self._parts)
                stack.callback(service.end)
                self.services[name] = service
            self._ending = stack.pop_all()

    def end(self) -> None:
        """Leave nothing behind."""
        self._ending.close()

    def start_another(self, where: Path, name: str, *arguments: str) -> ServiceProcess:
        """Start one service more, which is no member; it ends with the others."""
        where.mkdir()
        self._prepare(where)
        service = ServiceProcess(where, self.domain, "--app-name", name, *arguments, **self._parts)
        self._ending.callback(service.end)
        return service

    def roles(self, queue: str) -> dict[str, tuple[int, str]]:
        """The epoch and the role that each living service has logged last of a queue since it was started."""
        found: dict[str, tuple[int, str]] = {}
        for name, service in self.services.items():
            if service.is_running:
                roles = self.roles_in(service.log_of_run())
                if queue in roles:
                    found[name] = roles[queue]
        return found

    @staticmethod
    def roles_in(log: str) -> dict[str, tuple[int, str]]:
        """Return the epoch and the role that a log has last of each queue."""
        return {stream: (int(epoch), role) for _, stream, role, epoch in _ROLE.findall(log)}

    def master(self, queue: str, *, other_than: str = "") -> str:
        """Wait until a living service is the master of a queue, in the latest epoch; return its name."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            roles = self.roles(queue)
            latest = max((epoch for epoch, _ in roles.values()), default=0)
            for name, (epoch, role) in roles.items():
                if role == "master" and epoch == latest and name != other_than:
                    return name
            time.sleep(0.02)
        raise AssertionError("\n".join(service.log.read_text() for service in self.services.values()))

    def await_all(self, queue: str) -> str:
        """Wait until the replica of each living service has a vote, and one is master; return its name."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            roles = self.roles(queue)
            is_complete = len(roles) == sum(service.is_running for service in self.services.values())
            epochs, held = {epoch for epoch, _ in roles.values()}, {role for _, role in roles.values()}
            if is_complete and len(epochs) == 1 and "master" in held <= {"master", "slave"}:
                return self.master(queue)
            time.sleep(0.02)
        raise AssertionError(self.roles(queue))

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a service a signal; a kill is waited for."""
        service = self.services[name]
        os.kill(service.pid, number)
        if number == signal.SIGKILL:
            assert service.process is not None
            service.process.wait(PATIENCE_S)


class Load:
    """A producer and a consumer of one queue, each in a thread of its own, until `stop`."""

    def __init__(self, topic: str, domain: int, *, rate_s: float = 0.002, window_count: int = 50) -> None:
        self.accepted: set[SampleIdentity] = set()
        self.rejected: set[SampleIdentity] = set()
        self.written: dict[SampleIdentity, bytes] = {}
        self.received: Counter[SampleIdentity] = Counter()
        self.unflagged: Counter[SampleIdentity] = Counter()
        self.longest_stall_s = 0.0
        self.error: BaseException | None = None
        self._topic, self._domain, self._rate_s, self._window_count = topic, domain, rate_s, window_count
        self._stops_writing, self._stops = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(each,)) for each in (self._produce, self._consume)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Write no more, wait for all answers, and until what was accepted has come."""
        self._stops_writing.set()
        self._threads[0].join(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while self.accepted - self.received.keys() and time.monotonic() < deadline and self.error is None:
            time.sleep(0.05)
        self._stops.set()
        self._threads[1].join(PATIENCE_S)
        assert self.error is None, self.error

    def check(self) -> None:
        """No accepted sample is lost, none is invented, and none comes twice without the flag."""
        assert not self.accepted - self.received.keys(), sorted(self.accepted - self.received.keys())[:5]
        assert not self.received.keys() - self.written.keys()
        assert max(self.unflagged.values(), default=0) <= 1, self.unflagged.most_common(3)
        assert not self.rejected, f"{len(self.rejected)} were rejected"

    def _guarded(self, do: object) -> None:
        try:
            do()  # type: ignore[operator]
        except BaseException as error:  # shown by the test, in its own thread
            self.error = error
            self._stops.set()

    def _produce(self) -> None:
        with QueueProducer(self._topic, self._domain, window_count=self._window_count) as producer:
            producer.wait_for_queue(PATIENCE_S)
            number, latest_s = 0, time.monotonic()
            while not self._stops_writing.is_set() and not self._stops.is_set():
                number += 1
                payload = b"%d" % number
                identity = producer.write(payload, timeout_s=PATIENCE_S)
                self.written[identity] = payload
                producer.flush()
                latest_s = self._note(producer.pop_acknowledged(), latest_s)
                time.sleep(self._rate_s)
            with contextlib.suppress(NoAnswer):
                producer.wait_for_acknowledgments(PATIENCE_S)
            self._note(producer.pop_acknowledged(), latest_s)

    def _note(self, outcomes: Sequence[object], latest_s: float) -> float:
        for outcome in outcomes:
            (self.accepted if outcome.accepted else self.rejected).add(outcome.identity)  # type: ignore[attr-defined]
        if not outcomes:
            return latest_s
        now_s = time.monotonic()
        self.longest_stall_s = max(self.longest_stall_s, now_s - latest_s)
        return now_s

    def _consume(self) -> None:
        with QueueConsumer(self._topic, "S", self._domain) as consumer:
            consumer.wait_for_queue(PATIENCE_S)
            while not self._stops.is_set():
                for sample in consumer.receive(100, 0.1):
                    self.received[sample.identity] += 1
                    if not sample.redelivered:
                        self.unflagged[sample.identity] += 1
                    assert self.written.get(sample.identity, sample.value) == sample.value
                    sample.acknowledge()


@contextlib.contextmanager
def loads(domain: int, *topics: str) -> Iterator[list[Load]]:
    """Load on some topics; checked at the end."""
    running = [Load(topic, domain) for topic in topics]
    try:
        yield running
    finally:
        for load in running:
            load.stop()
    for load in running:
        load.check()
