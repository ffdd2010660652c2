"""Options of the commands on a site: the files that contain its load, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli._input_files import reading
from qsctl.cli.engine._options import DateOrderOption, date_order
from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.netconfig.listed_rates import WaitingListing
    from qsctl.netconfig.load import SiteLoad
    from qsctl.netconfig.procedures import ProcedureTable

_load_option = partial(typer.Option, rich_help_panel="Load")
_file_option = partial(typer.Option, rich_help_panel="Files")


@dataclass(frozen=True)
class SiteSources(OptionGroup):
    """The files with the load of a site: arrival rates, message sizes, and durations of procedures."""

    statistics: Annotated[
        list[Path] | None,
        _load_option(
            "--statistics",
            metavar="FILE",
            help="Dump of the threads' statistics: keyed lists, CSV, or lines `Msgs In : 12`; may be repeated, in the "
            "order of time: the rates are those between.",
        ),
    ] = None
    listing: Annotated[
        list[Path] | None,
        _load_option(
            "--listing",
            metavar="LISTING",
            help="Listing of the recovery database; given twice, the earlier one first.",
        ),
    ] = None
    archive: Annotated[
        Path | None,
        _load_option(metavar="DIR", help="Folder of saved messages, *.idx with their *.msg.", show_default="none"),
    ] = None
    durations: Annotated[
        Path | None,
        _load_option(
            metavar="FILE",
            help="Table of procedures and translations by name, in CSV: their times, and what they do.",
            show_default="none: they take no time",
        ),
    ] = None
    interval: Annotated[
        str,
        _load_option(
            metavar="DURATION",
            help="Time between two dumps or listings, a duration such as 15min.",
            show_default="what they state",
        ),
    ] = ""
    encoding: Annotated[
        str | None,
        _file_option(metavar="NAME", help="Encoding of the files, as cp1252.", show_default="their mark, else UTF-8"),
    ] = None
    dates: DateOrderOption = "mdy"

    @property
    def has_load(self) -> bool:
        """Return whether a file with the load was given."""
        return bool(self.statistics or self.listing or self.archive)

    def load(self) -> SiteLoad:
        """Return the load that the files contain.

        Raises:
            QsctlError: a file does not exist, or cannot be parsed.
            UsageError: one listing without a second, or an option that is not valid.
        """
        from qsctl.netconfig.archives import read_archives
        from qsctl.netconfig.load import SiteLoad, add_archives, add_statistics
        from qsctl.netconfig.statistics import read_statistics

        found = SiteLoad()
        order = date_order(self.dates)
        interval_s = self._interval_s()
        if self.archive is not None:
            add_archives(found, read_archives(self.archive, self.encoding))
        samples = [each for path in self.statistics or () for each in read_statistics(path, self.encoding, order)]
        add_statistics(found, samples, interval_s)
        self._add_listings(found, interval_s)
        return found

    def procedures(self) -> ProcedureTable:
        """Return the table of procedures.

        Raises:
            QsctlError: the file does not exist, or cannot be parsed.
        """
        from qsctl.netconfig.procedures import ProcedureTable, read_procedures

        return ProcedureTable() if self.durations is None else read_procedures(self.durations)

    def _interval_s(self) -> float | None:
        from qsctl.cli.location import seconds

        if not self.interval:
            return None
        found = seconds(self.interval, "--interval")
        if not found > 0:
            raise UsageError(f"--interval {self.interval} is not a time between two", remedy="Write it as in 15min.")
        return found

    def _add_listings(self, found: SiteLoad, interval_s: float | None) -> None:
        from qsctl.netconfig.listed_rates import listed_rates
        from qsctl.netconfig.load import add_listings

        if not self.listing:
            return
        if len(self.listing) != 2:
            raise UsageError(
                f"--listing is given {len(self.listing)} times",
                remedy="Give two listings of the same database, the earlier one first.",
            )
        before, after = (self._listed(each) for each in self.listing)
        seconds = interval_s
        if seconds is None and before.newest_s is not None and after.newest_s is not None:
            seconds = after.newest_s - before.newest_s
        if seconds is None or seconds <= 0:
            raise UsageError(
                "the time between the two listings is not known",
                remedy="Give the earlier one first, and the time between them with --interval.",
            )
        add_listings(found, listed_rates(before, after, seconds), (before, after), seconds)

    def _listed(self, path: Path) -> WaitingListing:
        from qsctl.dumps.read import read_messages
        from qsctl.netconfig.listed_rates import waiting_of

        with reading(path), path.open("rb") as stream:
            return waiting_of(read_messages(stream, str(path), encoding=self.encoding, order=date_order(self.dates)))
