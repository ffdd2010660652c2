"""What a summary must know of a run before Spark reads it: `run.json`, and which replications have settled figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyarrow import ArrowException
from pyarrow.parquet import read_metadata

from qsctl.errors import Damaged
from qsctl.eventlog.run_folder import RunInfo, parts_of, read_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.scenario import Model


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run in its folder.

    `replications` are those whose counters are written: of a run that was killed, the message log may hold the start
    of one more, which is left out. `bytes` is the size of what there is to read, `message_rows` how many messages the
    log has, `counter_rows` how many clients' queues there are, over all replications.
    """

    folder: Path
    info: RunInfo
    replications: tuple[int, ...]
    has_messages: bool
    bytes: int
    message_rows: int
    counter_rows: int

    @property
    def warm_up_ns(self) -> Nanoseconds:
        """Statistics start here."""
        return self.info.warm_up_ns

    @property
    def horizon_ns(self) -> Nanoseconds:
        """Where the run ended: for one that was stopped, where its last replication came to."""
        stopped = [each.simulated_ns for each in self.info.done if not each.complete]
        return min(stopped, default=self.info.horizon_ns)

    @property
    def level(self) -> str:
        """What there is to read: `messages`, or only `counters`."""
        return "messages" if self.has_messages else "counters"

    @property
    def tells_slowness(self) -> bool:
        """Whether its events have the percentages of slow subscribers: those of egress queues have."""
        egress = self.info.model in {Model.SOLACE, Model.TIBCO}
        return egress and self.info.log_level == LogLevel.EVENTS and bool(parts_of(self.folder, "events"))


def read_run(folder: Path) -> RecordedRun:
    """Read what a run folder says of itself.

    Raises:
        NotFound: the folder does not exist or is no run folder.
        Damaged: `run.json` is not what a run writes, or no replication has counters.
    """
    info = read_run_info(folder)
    found = {int(part.parent.name.partition("=")[2]) for part in parts_of(folder, "counters")}
    if not found:
        raise Damaged(
            f"{folder} has no counters of any replication: the run was cut off (its status is {info.status.value})",
            remedy="Run the simulation again.",
        )
    messages = parts_of(folder, "messages")
    size = sum(part.stat().st_size for part in [*messages, *parts_of(folder, "counters")])
    return RecordedRun(
        folder.resolve(), info, tuple(sorted(found)), bool(messages), size,
        message_rows=_rows(messages), counter_rows=_rows(parts_of(folder, "counters")),
    )  # fmt: skip


def _rows(parts: Iterable[Path]) -> int:
    """How many rows the files say that they have."""
    rows = 0
    for part in parts:
        try:
            rows += read_metadata(part).num_rows
        except (ArrowException, OSError) as error:
            raise Damaged(
                f"{part} is not a whole Parquet file: {error}",
                remedy="The run was cut off while it wrote this file; run the simulation again.",
            ) from None
    return rows
