"""The source of `qsctl top` for a run or a recording: its queues at any instant, with arrivals and departures.

Decides the resolution of time. Movements are counted in bins of time, as many as memory allows: a depth is exact at the
ends of bins, a rate is the mean of the bins of the last second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.cli.output.results import Row
from qsctl.cli.top.look import Figure, Look, summary_of
from qsctl.errors import NotFound
from qsctl.eventlog.location import Location
from qsctl.eventlog.outcomes import LOSSES, Outcome
from qsctl.eventlog.reader import RecordedRun, batches_of, open_run
from qsctl.eventlog.run_folder import RunInfo
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary.recorded_run import holding_of

_CELLS_MAX: Final = 4_000_000
_BINS_MAX: Final = 4_000
_MOVES: Final = ("in", "out", "gone", "sent", "again", "lost")
"""Kinds of movements of a message, counted by bin: enters, delivered, leaves in any way, sent, sent again, lost."""

RUN_FIGURES: Final = (
    Figure("depth", "Depth", "Depth"),
    Figure("unacknowledged", "Unack", "Unacknowledged", rank=1),
    Figure("in_per_s", " In/s", "In/s"),
    Figure("out_per_s", "Out/s", "Out/s"),
    Figure("delivered", "Deliv", "Delivered", rank=2),
    Figure("redelivered", "Redel", "Redelivered", rank=2),
    Figure("lost", " Lost", "Lost", rank=1),
    Figure("highest", "HWMrk", "Highest", rank=3),
)
CONSUMER_FIGURES: Final = (
    Figure("outstanding", "Outst", "Outstanding"),
    Figure("delivered", "Deliv", "Deliveries"),
    Figure("acknowledged", " Ackd", "Acknowledged"),
    Figure("redelivered", "Redel", "Redelivered"),
)


@dataclass(slots=True)
class RunClock:
    """The clock of a replayed run: it advances by itself, and can be stopped, set and accelerated.

    Args:
        horizon_ns: the end of the run, where it stops.
        speed: seconds of the run per second.
    """

    horizon_ns: Nanoseconds
    speed: float
    is_stopped: bool = False
    _at_ns: float = 0.0
    _since_ns: int = field(default_factory=time.monotonic_ns)

    def now(self) -> Nanoseconds:
        """Return the present instant of the run."""
        self._go_on()
        return round(self._at_ns)

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        """Change the speed, the instant, and whether the clock is stopped."""
        self._go_on()
        self.speed = min(max(self.speed * 2.0**speed_steps, 2.0**-10), 2.0**30)
        self._at_ns = min(max(0.0, self._at_ns + seek_steps * self.horizon_ns / 20), float(self.horizon_ns))
        self.is_stopped = is_stopped

    def _go_on(self) -> None:
        now = time.monotonic_ns()
        if not self.is_stopped:
            self._at_ns = min(self._at_ns + (now - self._since_ns) * self.speed, float(self.horizon_ns))
        self._since_ns = now


class RunSource:
    """A run folder as a `LookSource`.

    Args:
        folder: of a run of `simulate` or `replay`, or a recording.
        speed: seconds of the run per second.
        replication: the repetition to show.

    Raises:
        NotFound: the folder is not a run, has no message rows, or has no such replication.
        Damaged: a file of it is missing or was changed.
    """

    def __init__(self, folder: Location, speed: float, replication: int = 0) -> None:
        self._run = open_run(folder)
        self._replication = replication
        info = self._run.info
        if replication >= info.replications:
            raise NotFound(f"{folder} has no replication {replication}", remedy=f"It has 0 to {info.replications - 1}.")
        self.clock = RunClock(info.horizon_ns, speed)
        self._names, moves = _moves(self._run, replication)
        self._bins = moves.shape[2]
        self._sums = moves.cumsum(axis=2, dtype=np.int64)
        depths = self._sums[_MOVES.index("in")] - self._sums[_MOVES.index("gone")]
        self._depths = depths
        self._highest = np.maximum.accumulate(depths, axis=1)
        self._deliveries: pa.Table | None = None

    def title(self) -> str:
        """Return the run's name, its present instant, and its speed."""
        at, horizon = self.clock.now() / SECOND_NS, self.clock.horizon_ns / SECOND_NS
        how = "stopped" if self.clock.is_stopped else f"{self.clock.speed:g} times as fast"
        end = "   the end" if at >= horizon else ""
        return f"qsctl top   {self._run.folder.name}   {at:.3f} s of {horizon:.3f} s   {how}{end}"

    def look(self, of: str = "") -> Look:
        """Return every queue at the present instant, or the consumers of the named one."""
        now = self.clock.now()
        return self._consumers(of, now) if of else self.at(now)

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        """Change the speed by doublings, move forward by twentieths, stop or continue."""
        self.clock.steer(speed_steps, seek_steps, is_stopped=is_stopped)

    def close(self) -> None:
        """Do nothing: the files were read completely."""

    def depths(self, name: str, now_ns: Nanoseconds, count: int) -> list[int]:
        """Return the depths of a queue in at most `count` bins of time before an instant, the oldest first."""
        seen = min(self._bins, now_ns * self._bins // max(1, self.clock.horizon_ns))
        found: list[int] = self._depths[self._names.index(name), max(0, seen - count) : seen].tolist()
        return found

    @property
    def bin_ns(self) -> float:
        """Return the length of a bin of time in nanoseconds."""
        return float(self.clock.horizon_ns / self._bins)

    def at(self, now_ns: Nanoseconds) -> Look:
        """Return the queues at an instant of the run."""
        horizon_ns = max(1, self.clock.horizon_ns)
        seen = min(self._bins, now_ns * self._bins // horizon_ns)
        """Number of complete bins."""
        second = max(1, min(self._bins, round(SECOND_NS * self._bins / horizon_ns)))
        before = max(0, seen - second)
        span_s = max(1, seen - before) * horizon_ns / self._bins / SECOND_NS

        def until(bins: int) -> Any:
            return self._sums[:, :, bins - 1] if bins else np.zeros(self._sums.shape[:2], np.int64)

        sums, earlier = until(seen), until(before)
        total = dict(zip(_MOVES, sums, strict=True))
        rates = dict(zip(_MOVES, (sums - earlier) / span_s, strict=True))
        highest = self._highest[:, seen - 1] if seen else np.zeros(len(self._names), np.int64)
        rows: list[Row] = [
            {
                "name": name,
                "depth": int(total["in"][at] - total["gone"][at]),
                "unacknowledged": int(max(0, total["sent"][at] - total["out"][at])),
                "in_per_s": float(rates["in"][at]),
                "out_per_s": float(rates["out"][at]),
                "delivered": int(total["out"][at]),
                "redelivered": int(total["again"][at]),
                "lost": int(total["lost"][at]),
                "highest": int(highest[at]),
            }
            for at, name in enumerate(self._names)
        ]
        return Look("Queue", RUN_FIGURES, rows, summary_of(rows), "" if rows else "The run has no queue.")

    def _consumers(self, of: str, now_ns: Nanoseconds) -> Look:
        """Return the consumers of a recorded queue at an instant."""
        if not self._run.info.recording:
            return Look("Consumer", CONSUMER_FIGURES, [], note="Only recordings of services know their consumers.")
        rows = [self._consumer(guid, number, of, now_ns) for number, guid in self._present(of, now_ns).items()]
        summary = f"{len(rows)} consumer{'s' * (len(rows) != 1)}"
        return Look("Consumer", CONSUMER_FIGURES, rows, summary, "" if rows else "There are no consumers.")

    def _present(self, of: str, now_ns: Nanoseconds) -> dict[int, str]:
        """Return the GUIDs of the consumers that are present at an instant, by their numbers."""
        present: dict[int, str] = {}
        for batch in batches_of(self._run.folder, self._run.info, "peers", None):
            for row in batch.to_pylist():
                if row["at_ns"] > now_ns or row["queue"] is None or not _is_queue(row["queue"], of):
                    continue
                if row["happening"] == "consumer_joined":
                    present[row["peer"]] = row["guid"]
                elif row["happening"] == "consumer_left":
                    present.pop(row["peer"], None)
        return present

    def _consumer(self, guid: str, number: int, of: str, now_ns: Nanoseconds) -> Row:
        if self._deliveries is None:
            columns = ["queue", "consumer", "sent_ns", "answer", "answered_ns", "attempt"]
            batches = list(batches_of(self._run.folder, self._run.info, "deliveries", columns))
            self._deliveries = pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in columns})
        found = self._deliveries
        queues = [name for name in pc.unique(found["queue"]).to_pylist() if _is_queue(name, of)]
        mine = found.filter(
            pc.and_(
                pc.and_(pc.equal(found["consumer"], number), pc.less_equal(found["sent_ns"], now_ns)),
                pc.is_in(pc.cast(found["queue"], pa.string()), value_set=pa.array(queues, pa.string())),
            )
        )
        answered = pc.fill_null(pc.less_equal(mine["answered_ns"], now_ns), False)
        done = mine.filter(answered)
        return {
            "name": guid,
            "outstanding": mine.num_rows - done.num_rows,
            "delivered": mine.num_rows,
            "acknowledged": pc.sum(pc.equal(pc.cast(done["answer"], pa.string()), "acknowledged")).as_py() or 0,
            "redelivered": pc.sum(pc.greater(mine["attempt"], 1)).as_py() or 0,
        }


def _is_queue(full_name: str, of: str) -> bool:
    """Return whether a queue's full name belongs to a row, whose name is the service's and the queue's own."""
    return full_name.rpartition("/")[2] == of.rpartition("/")[2]


def _moves(run: RecordedRun, replication: int) -> tuple[list[str], Any]:
    """Return the names of the queues, and the numbers of movements by kind, queue and bin."""
    info = run.info
    counters = run.counters()
    rows = counters.filter(pc.equal(counters["replication"], replication))
    keys = list(zip(rows["client_id"].to_pylist(), rows["queue"].to_pylist(), strict=True))
    names = [
        f"{client}/{queue}" for client, queue in zip(rows["client"].to_pylist(), rows["queue"].to_pylist(), strict=True)
    ]
    places = {key: at for at, key in enumerate(keys)}
    bins = max(1, min(_BINS_MAX, _CELLS_MAX // max(1, len(_MOVES) * len(keys))))
    counts = np.zeros((len(_MOVES), len(keys), bins), np.int32)
    holders = holding_of(run)
    for batch in _messages(run, replication):
        queue = batch["queue"].to_pylist() if len(keys) == 0 else pc.cast(batch["queue"], pa.string())
        clients = batch["client_id"].to_numpy(zero_copy_only=False)
        dictionary, indices = np.unique(queue.to_numpy(zero_copy_only=False), return_inverse=True)
        place = np.array(
            [
                places.get((int(client), str(dictionary[index])), -1)
                for client, index in zip(clients, indices, strict=True)
            ],
            np.int64,
        )
        holds = np.array(
            [
                holders.everywhere or (int(client) in holders.clients and dictionary[index] == "G-1")
                for client, index in zip(clients, indices, strict=True)
            ],
            bool,
        )
        _count(counts, batch, place, holds, info, bins)
    return names, counts


def _messages(run: RecordedRun, replication: int) -> Iterator[pa.RecordBatch]:
    columns = ["client_id", "queue", "enqueued_ns", "enter_ns", "wait_ns", "acknowledge_ns", "outcome", "attempts"]
    for batch in run.messages(columns):
        if batch.num_rows and batch["replication"][0].as_py() == replication:
            yield batch


def _count(counts: Any, batch: pa.RecordBatch, place: Any, holds: Any, info: RunInfo, bins: int) -> None:
    """Add the movements of a batch of messages to the counts."""

    def column(name: str) -> Any:
        return pc.fill_null(pc.cast(batch[name], pa.int64()), -1).to_numpy(zero_copy_only=False)

    outcome = pc.cast(batch["outcome"], pa.string())
    enqueued, enter, wait, acknowledged = map(column, ("enqueued_ns", "enter_ns", "wait_ns", "acknowledge_ns"))
    attempts = column("attempts")
    delivered = pc.equal(outcome, Outcome.DELIVERED).to_numpy(zero_copy_only=False)
    held = pc.equal(outcome, Outcome.HELD).to_numpy(zero_copy_only=False)
    lost = pc.is_in(outcome, value_set=pa.array([each.value for each in LOSSES])).to_numpy(zero_copy_only=False)
    stays = np.where(holds & delivered & (acknowledged >= 0), acknowledged, wait)
    leaves = (stays >= 0) & ~(held & holds)
    is_sent = (wait >= 0) & (delivered | (held & holds))

    def add(move: str, chosen: Any, after_ns: Any, weight: Any = None) -> None:
        fitting = chosen & (place >= 0)
        at = (enqueued[fitting] + after_ns[fitting]).clip(0, info.horizon_ns - 1) * bins // max(1, info.horizon_ns)
        np.add.at(counts[_MOVES.index(move)], (place[fitting], at), 1 if weight is None else weight[fitting])

    add("in", enter >= 0, enter)
    add("gone", (enter >= 0) & leaves, stays)
    add("out", delivered & (stays >= 0), stays)
    add("sent", is_sent, wait)
    add("again", (attempts > 1) & (wait >= 0), stays.clip(0), attempts - 1)
    add("lost", lost, np.maximum(wait, 0))
