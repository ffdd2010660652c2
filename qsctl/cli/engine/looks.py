"""The sources of commands that watch an engine: its database, or listings that a timer captures.

Decides the kind of a source by its content. Instants of a database are on the clock of its engine, those of listings on
the clock of their host.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input
from qsctl.cli.engine._options import DateOrderOption, date_order
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.output.render import note
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.dumps.figures import EngineFigures, EngineHistory

_listing_option = partial(typer.Option, rich_help_panel="Listings")

FILES_HELP: Final = "Recovery database, or listings of one: files, or the folder that a timer writes them to"
SOURCE_HELP: Final = f"{FILES_HELP}; -: a listing on standard input."
SourcesArgument = Annotated[list[Path], typer.Argument(metavar="SOURCE…", help=SOURCE_HELP, show_default=False)]

_SQLITE: Final = b"SQLite format 3\0"
_TEXT_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")


class WatchedEngine(NamedTuple):
    """The figures of an engine over time, and the damaged places of its database."""

    history: EngineHistory
    damage: tuple[str, ...] = ()
    is_database: bool = False


@dataclass(frozen=True)
class LookOptions(OptionGroup):
    """The options for reading listings, and for choosing the one that the newest is compared with."""

    over: Annotated[
        str | None,
        _listing_option(
            metavar="DURATION",
            help="Time that rates are of, such as 15min: the newest listing is compared with one so much older.",
            show_default="since the listing before it",
        ),
    ] = None
    last: Annotated[int, _listing_option(min=1, help="Number of the newest listings that are read.")] = 60
    order_of_dates: DateOrderOption = "mdy"
    encoding: Annotated[
        str | None,
        _listing_option(
            metavar="NAME",
            help="Encoding of listings, as in cp1252.",
            show_default="by their byte order mark, else UTF-8",
        ),
    ] = None

    def look(self, sources: Sequence[Path], *, needs_history: bool = True) -> WatchedEngine:
        """Read the sources once.

        Args:
            sources: a database, or listings.
            needs_history: whether listings before the compared one are read, too: for the last messages of threads, and
                for conditions with a duration.

        Raises:
            UsageError: the sources are of two kinds, or an option is not valid.
            QsctlError: none of them can be read.
        """
        from qsctl.dumps.figures import history_of
        from qsctl.dumps.lines import check_encoding
        from qsctl.dumps.series import read_series
        from qsctl.instant import parse_duration

        check_encoding(self.encoding)
        dates = date_order(self.order_of_dates)
        over_ns = 0 if self.over is None else parse_duration(self.over)
        if is_one_database(sources):
            figures, damage = look_at_database(sources[0])
            return WatchedEngine(history_of([figures]), damage, is_database=True)
        if len(sources) == 1 and is_standard_input(sources[0]):
            return WatchedEngine(history_of([self._standard_input()]))

        def is_enough(found: Sequence[EngineFigures]) -> bool:
            span_ns = found[0].taken.utc_ns - found[-1].taken.utc_ns if len(found) > 1 else -1
            return not needs_history and span_ns >= over_ns

        looks = read_series(sources, self.last, note, is_enough=is_enough, encoding=self.encoding, order=dates)
        return WatchedEngine(history_of(looks, over_ns))

    def _standard_input(self) -> EngineFigures:
        from qsctl.dumps.figures import EngineFigures, TakenAt
        from qsctl.dumps.read import read_messages

        figures = EngineFigures(TakenAt.of_clock(time.time()), (STANDARD_INPUT,))
        stream = typer.get_binary_stream("stdin")
        order = date_order(self.order_of_dates)
        figures.add(read_messages(stream, STANDARD_INPUT, encoding=self.encoding, order=order))
        return figures


def is_one_database(sources: Sequence[Path]) -> bool:
    """Return whether the sources are one recovery database.

    Raises:
        UsageError: there are a database and further sources.
    """
    databases = [each for each in sources if not is_standard_input(each) and _is_database(each)]
    if databases and len(sources) > 1:
        raise UsageError(
            f"{databases[0]} is a database and cannot be combined with other sources",
            remedy="Name one database, or listings.",
        )
    return bool(databases)


def _is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database, or looks like one whose header is damaged: binary, or with a log."""
    if path.with_name(path.name + "-wal").exists():
        return True
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError:
        return False
    return head.startswith(_SQLITE) or (b"\0" in head and not head.startswith(_TEXT_MARKS))


def look_at_database(path: Path) -> tuple[EngineFigures, tuple[str, ...]]:
    """Return the figures of the recovery and the error database of a file, and its damaged places.

    Raises:
        QsctlError: nothing of it can be read.
    """
    from qsctl.dumps.figures import EngineFigures, TakenAt
    from qsctl.dumps.from_database import listed
    from qsctl.sim.engine.recovery_store import read_recovery_database

    content = read_recovery_database(path)
    database, peers = content.database, content.peers
    figures = EngineFigures(
        TakenAt.of_engine(max(database.latest_ns, peers.at_ns)),
        (str(path),),
        received={name: each.number - len(each.sizes_bytes) for name, each in peers.senders.items()},
        delivered=dict(peers.processed),
    )
    figures.add(map(listed, (*database.messages(), *database.failed())))
    return figures, tuple(f"offset {each.offset}: {each.what}" for each in content.damage)
