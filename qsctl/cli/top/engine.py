"""The source of `qsctl top` for an integration engine: its database, or listings that a timer captures.

Decides the rates. From one reading of a database to the next they are counted on the engine's clock; deliveries of its
outbound threads are used if they are more. Of listings the newest two are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.caller import notes_go_to
from qsctl.cli.engine.results import age_text
from qsctl.cli.monitoring.show_engine import empty_at, moment_text
from qsctl.cli.top.look import Figure, Look, summary_of
from qsctl.instant import SECOND_NS

if TYPE_CHECKING:
    from qsctl.cli.engine.looks import LookOptions
    from qsctl.cli.output.results import Row
    from qsctl.dumps.figures import EngineFigures, EngineHistory, QueueTrend

ENGINE_FIGURES: Final = (
    Figure("depth", "Depth", "Messages"),
    Figure("in_per_s", " In/s", "In/s"),
    Figure("out_per_s", "Out/s", "Out/s"),
    Figure("oldest", "Oldst", "Oldest", rank=1, is_text=True),
    Figure("empty", "Empty", "Empty at", rank=1, is_text=True),
    Figure("kilobytes", "   KB", "KB", rank=3),
)
MESSAGE_FIGURES: Final = (
    Figure("place", "Place", "Place"),
    Figure("priority", " Prio", "Priority"),
    Figure("bytes", "Bytes", "Bytes", rank=1),
    Figure("age", "  Age", "Age", is_text=True),
    Figure("source", "From", "Source", rank=1, is_text=True),
)
_MOST_MESSAGES: Final = 500


class EngineSource:
    """An engine as a `LookSource`.

    Args:
        sources: its database, or listings.
        options: how listings are read.
    """

    def __init__(self, sources: Sequence[Path], options: LookOptions) -> None:
        self._sources = sources
        self._options = options
        self._before: EngineFigures | None = None
        self._title = ""

    def title(self) -> str:
        """Return the source's name, and the instant of the reading."""
        return f"qsctl top   {self._sources[0]}   {self._title}"

    def look(self, of: str = "") -> Look:
        """Return the queues, or the messages of the named one in the order in which they will be sent."""
        from qsctl.dumps.figures import trends

        if of:
            return self._messages(of)
        notes: list[str] = []
        with notes_go_to(notes.append):  # they would be written over the screen
            watched = self._options.look(self._sources, needs_history=False)
        history = watched.history
        now = history.now
        self._title = moment_text(now)
        before = self._before if watched.is_database else history.before
        rows = [_row(each, now, before) for each in trends(now, before)]
        if watched.is_database:
            self._before = now
        wrong = f"Damaged: {watched.damage[0]}" if watched.damage else " ".join(" ".join(notes).split())
        return Look("Queue", ENGINE_FIGURES, rows, _summary(rows, history), wrong or ("" if rows else "Nothing waits."))

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        """Do nothing: only a replayed run can be steered."""

    def close(self) -> None:
        """Do nothing: each reading opens and closes the files."""

    def _messages(self, of: str) -> Look:
        from qsctl.cli.engine.looks import is_one_database
        from qsctl.dumps.figures import TakenAt
        from qsctl.dumps.from_database import listed
        from qsctl.dumps.groups import state_words, thread_of
        from qsctl.dumps.order import ListOrder, in_order
        from qsctl.sim.engine.recovery_store import read_recovery_database

        if not is_one_database(self._sources):
            return Look("Message", MESSAGE_FIGURES, [], f"of {of}", "Of listings: qsctl engine dump --file lists them.")
        content = read_recovery_database(self._sources[0])
        taken = TakenAt.of_engine(max(content.database.latest_ns, content.peers.at_ns))
        messages = [listed(each) for each in content.database.messages()]
        mine = in_order((e for e in messages if f"{thread_of(e)} {state_words(e)}" == of), ListOrder.QUEUE)
        rows: list[Row] = [
            {
                "name": str(each.mid),
                "place": place,
                "priority": each.priority,
                "bytes": each.size_bytes,
                "age": "" if each.created is None else age_text(taken.age_ns(each.created) / 1e9),
                "source": each.source,
            }
            for place, each in enumerate(mine[:_MOST_MESSAGES], 1)
        ]
        more = f"The first {_MOST_MESSAGES} of {len(mine)}." if len(mine) > _MOST_MESSAGES else ""
        return Look("Message", MESSAGE_FIGURES, rows, f"{len(mine)} of {of}", more if rows else "It is empty.")


def _row(each: QueueTrend, now: EngineFigures, before: EngineFigures | None) -> Row:
    key, span_s = each.key, each.span_ns / SECOND_NS
    empty_ns = each.empty_after_ns
    rates: tuple[float | None, float | None] = (None, None)
    if before is not None and span_s > 0:
        left = each.left or 0
        if key.name == "outbound post-TPS":
            left = max(left, now.delivered.get(key.thread, 0) - before.delivered.get(key.thread, 0))
        arrived = max(each.arrived or 0, left + each.messages - (each.before or 0))
        rates = arrived / span_s, left / span_s
    return {
        "name": f"{key.thread} {key.state} {key.name}",
        "depth": each.messages,
        "in_per_s": rates[0],
        "out_per_s": rates[1],
        "oldest": "" if each.oldest_age_ns is None else age_text(each.oldest_age_ns / 1e9),
        "empty": "" if empty_ns is None else empty_at(now, empty_ns),
        "kilobytes": each.size_bytes / 1024,
    }


def _summary(rows: Sequence[Row], history: EngineHistory) -> str:
    errors = history.now.errors
    numbers = ", ".join(f"{count} of {number}" for number, count in sorted(errors.items())[:5])
    return f"{summary_of(rows)}   errors {history.now.error_messages}{f' ({numbers})' if numbers else ''}"
