"""The order of waiting samples, and the delivery groups that receive them [QS 2.10 and 2.11.3].

Decides: the next sample of a group, and the group of each sample and consumer.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

from qsctl.core.queue._run import SINGLE, WAITING, Run
from qsctl.core.queue.consumer import Consumer, Ring
from qsctl.core.queue.sample import Sample, SampleState
from qsctl.identity import NIL_GUID, Guid

_ENQUEUED = SampleState.ENQUEUED


class DeliveryGroup:
    """The samples that wait for the same consumers, in queue order, and the ring of those consumers.

    A retried sample returns to the front, to its original position. A sample that leaves while it waits (expired,
    flushed, acknowledged late) is skipped when its turn comes; such samples are removed in bulk before they outnumber
    the waiting ones.
    """

    __slots__ = ("_fresh", "_returned", "address", "ring", "run_count", "waiting_count")

    def __init__(self, address: Guid = NIL_GUID) -> None:
        self.address = address
        self._fresh: deque[Sample | Run] = deque()
        self._returned: list[tuple[int, Sample]] = []
        self.ring = Ring()
        self.waiting_count = 0
        self.run_count = 0
        """Number of runs among the entries."""

    def append(self, sample: Sample) -> None:
        """Append a new sample behind all others."""
        self._fresh.append(sample)
        self.waiting_count += 1

    def append_run(self, run: Run, waiting_count: int) -> None:
        """Append a run behind all others; the number of its samples that are waiting, at its cursor or behind."""
        self._fresh.append(run)
        self.waiting_count += waiting_count
        self.run_count += 1

    def first_run(self) -> Run | None:
        """Return the run whose waiting samples are next; None: the next sample is by itself."""
        fresh = self._fresh
        while fresh and not self._returned and type(run := fresh[0]) is Run:
            if run.marks[run.cursor] == WAITING:
                return run
            if not run.pass_over_left():
                return None
            if run.cursor == run.count:
                fresh.popleft()
                self.run_count -= 1
        return None

    def move_on(self, run: Run, count: int) -> None:
        """Count samples at the cursor of the run that `first_run` returned as sent."""
        self.waiting_count -= count
        run.cursor += count
        if run.cursor == run.count:
            self._fresh.popleft()
            self.run_count -= 1

    def put_back(self, sample: Sample) -> None:
        """Return a sample whose delivery failed to its original position."""
        heappush(self._returned, (sample.position, sample))
        self.waiting_count += 1

    def first(self) -> Sample:
        """Return the next sample to send; at least one must be waiting."""
        fresh, returned = self._fresh, self._returned
        if fresh and not returned and (head := fresh[0]).state is _ENQUEUED and type(head) is Sample:
            return head
        while returned and returned[0][1].state is not _ENQUEUED:
            heappop(returned)
        sample: Sample | None = None
        while fresh and sample is None:
            head = fresh[0]
            if isinstance(head, Run):
                sample = _first_of(head)
                self.run_count -= sample is None
            elif head.state is _ENQUEUED:
                sample = head
            if sample is None:
                fresh.popleft()
        if returned and not (sample is not None and sample.position < returned[0][0]):
            return returned[0][1]
        assert sample is not None
        return sample

    def pop(self, first: Sample) -> None:
        """Remove the sample that `first` returned."""
        fresh = self._fresh
        head = fresh[0] if fresh else None
        if head is first:
            fresh.popleft()
        elif type(head) is Run and head.cursor < head.count and head.samples.get(head.cursor) is first:
            head.cursor += 1
            if head.cursor == head.count:
                fresh.popleft()
                self.run_count -= 1
        else:
            heappop(self._returned)
        self.waiting_count -= 1

    def pop_all(self) -> list[Sample]:
        """Remove every waiting sample, and return them in queue order."""
        samples = self.waiting()
        self._fresh.clear()
        self._returned.clear()
        self.waiting_count = self.run_count = 0
        return samples

    def drop(self) -> None:
        """Count a waiting sample as gone, which left the queue: its final state marks its entry as stale."""
        self.waiting_count -= 1
        if len(self._fresh) + len(self._returned) > 2 * self.waiting_count + 64:
            self._fresh = deque(entry for entry in self._fresh if entry.state is _ENQUEUED)
            self.run_count = sum(type(entry) is Run for entry in self._fresh)
            self._returned = [entry for entry in self._returned if entry[1].state is _ENQUEUED]
            heapify(self._returned)

    def waiting(self) -> list[Sample]:
        """Return the waiting samples in queue order."""
        samples: list[Sample] = []
        for entry in self._fresh:
            if isinstance(entry, Run):
                samples += _waiting_of(entry)
            elif entry.state is _ENQUEUED:
                samples.append(entry)
        samples += [sample for _, sample in self._returned if sample.state is _ENQUEUED]
        return sorted(samples, key=lambda sample: sample.position)


def _first_of(run: Run) -> Sample | None:
    """Single out the first waiting sample of a run, and return it; None: none is waiting."""
    for offset in range(run.cursor, run.count):
        run.cursor = offset
        mark = run.marks[offset]
        if mark == WAITING or (mark == SINGLE and run.samples[offset].state is _ENQUEUED):
            return run.single_out(offset)
    return None


def _waiting_of(run: Run) -> list[Sample]:
    """Single out the waiting samples of a run, and return them."""
    offsets = [offset for offset in range(run.cursor, run.count) if run.marks[offset] in (WAITING, SINGLE)]
    return [sample for sample in map(run.single_out, offsets) if sample.state is _ENQUEUED]


class DeliveryGroups:
    """The delivery groups of a queue: one for all consumers, or one per requester.

    Our reading: a queue routes by address if it is the reply queue of another, or as soon as a requester's reader (one
    with a source GUID) has joined it. A reply for an absent requester waits in that requester's group, and is delivered
    after its restart under the same source GUID [QS 2.11.1]. In any other queue every consumer may receive every
    sample.
    """

    __slots__ = ("_addressed", "main", "routes")

    def __init__(self) -> None:
        self.main = DeliveryGroup()
        self.routes = False
        self._addressed: dict[Guid, DeliveryGroup] = {}

    def of_sample(self, sample: Sample | Run) -> DeliveryGroup:
        """Return the delivery group of a sample, or of a run, by its address.

        That is the related source GUID, else the related reader GUID.
        """
        if not self.routes:
            return self.main
        return self._of(
            sample.related_source_guid if sample.related_source_guid != NIL_GUID else sample.related_reader_guid
        )

    def of_consumer(self, consumer: Consumer) -> DeliveryGroup:
        """Return the delivery group of a consumer."""
        return self._of(consumer.source_guid)

    def all(self) -> list[DeliveryGroup]:
        """Return all delivery groups."""
        return [self.main, *self._addressed.values()]

    def start_routing(self) -> list[DeliveryGroup]:
        """Start routing: distribute the waiting samples over groups by address; return the groups that have samples."""
        if self.routes:
            return []
        self.routes = True
        everything = self.main.pop_all()
        groups: dict[int, DeliveryGroup] = {}
        for sample in everything:
            group = self.of_sample(sample)
            group.append(sample)
            groups[id(group)] = group
        return list(groups.values())

    def forget_empty(self, group: DeliveryGroup) -> None:
        """Drop the group of an absent requester if no sample waits in it."""
        if group.address != NIL_GUID and not group.waiting_count and not len(group.ring):
            self._addressed.pop(group.address, None)

    def _of(self, address: Guid) -> DeliveryGroup:
        if address == NIL_GUID:
            return self.main
        group = self._addressed.get(address)
        if group is None:
            group = self._addressed[address] = DeliveryGroup(address)
        return group
