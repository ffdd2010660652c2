"""The source of a listing: a simulated run, a listing captured from a broker, or the broker itself.

Decides that the newest run of `qsctl-runs` is used unless another source is named, and how names are matched.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeGuard, TypeVar

import typer

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.broker_options import BrokerOptions
from qsctl.errors import InvalidInput, NotFound, Refused, UsageError

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.profiles.listings.model import Listings
    from qsctl.sim.listings.run_state import RunState

_source_option = partial(typer.Option, rich_help_panel="Source")
RunOption = Annotated[
    Path | None,
    _source_option(metavar="RUN", help="Run folder of `qsctl simulate`.", show_default="the newest one in qsctl-runs"),
]
ListingOption = Annotated[
    Path | None,
    _source_option(
        metavar="FILE", help="Captured listing of a broker, or SEMP replies, instead of a run; -: standard input."
    ),
]
ReplicationOption = Annotated[int, _source_option(min=0, help="Number of the replication of the run, from 0.")]

_Named = TypeVar("_Named")


@dataclass(frozen=True)
class ListingSource(BrokerOptions):
    """The options of a source of figures: a run, a captured listing, or a broker."""

    run: RunOption = None
    listing: ListingOption = None

    @property
    def is_captured(self) -> bool:
        """Return whether the figures are a broker's, captured or queried now."""
        return self.listing is not None or bool(self.broker)

    @property
    def where(self) -> str:
        """Return the name of the source for error messages."""
        return self.broker or str(self.listing or self.run or "the newest run")

    def check(self) -> None:
        """Check that at most one source is named.

        Raises:
            UsageError: more than one is named.
        """
        given = [
            option
            for option, value in (("--run", self.run), ("--listing", self.listing), ("--broker", self.broker))
            if value
        ]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} are both given", remedy="Name one source.")

    def listings(self, ask: Callable[[SempBroker], Listings]) -> Listings:
        """Read the captured listing, or query the broker.

        Args:
            ask: sends the request to the broker.

        Raises:
            NotFound: the file does not exist.
            InvalidFile: it is not a listing; the message contains every problem.
            QsctlError: the broker does not answer, or refuses.
        """
        if self.listing is not None:
            return load_listing(self.listing)
        with self.open() as broker:
            return ask(broker)


def load_listing(file: Path) -> Listings:
    """Read a captured listing.

    Raises:
        NotFound: the file does not exist.
        InvalidFile: it is not a listing; the message contains every problem.
    """
    from qsctl.profiles.listings.read import LIMIT_BYTES, read_listings

    if is_standard_input(file):
        data = typer.get_binary_stream("stdin").read(LIMIT_BYTES + 1)
        return read_listings(data, STANDARD_INPUT)
    with reading(file), file.open("rb") as stream:
        data = stream.read(LIMIT_BYTES + 1)
    return read_listings(data, str(file))


def is_a_run(source: Path | None, broker: BrokerOptions) -> TypeGuard[Path]:
    """Return whether the source is a run folder, rather than a captured file or a broker.

    Raises:
        UsageError: neither a source nor a broker is named, or both are.
    """
    if (source is None) != bool(broker.broker):
        what = "there is no source" if source is None else f"{source} and --broker are both given"
        raise UsageError(what, remedy="Name a file, a run folder, or a broker with --broker.")
    return source is not None and not is_standard_input(source) and source.is_dir()


def captured(source: Path | None, broker: BrokerOptions, ask: Callable[[SempBroker], Listings]) -> tuple[Listings, str]:
    """Return the listings of a file or, without one, of the broker; and the name of the source.

    Raises:
        QsctlError: the file cannot be read as by `load_listing`; the broker does not answer, or refuses.
    """
    if source is not None:
        return load_listing(source), STANDARD_INPUT if is_standard_input(source) else str(source)
    with broker.open() as opened:
        return ask(opened), opened.name


def joined(*parts: Listings) -> Listings:
    """Return the concatenation of several listings."""
    from qsctl.profiles.listings.model import Listings as Made

    together = {
        each.name: tuple(thing for part in parts for thing in getattr(part, each.name))
        for each in dataclasses.fields(Made)
    }
    return Made(**together)


def optional(*asked: Callable[[], Listings]) -> Iterator[Listings]:
    """Yield the answers of queries by SEMP v1; for the first refused one a note, and no more after it.

    SEMP v1 may be off, or forbidden for this user; the answers of SEMP v2 are useful without it.
    """
    from qsctl.profiles.listings.model import Listings as Made

    for ask in asked:
        try:
            yield ask()
        except (Refused, NotFound, InvalidInput) as error:
            yield Made(notes=(f"SEMP v1 was refused, which alone has queues and windows: {error.message}",))
            return


def load_run(run: Path | None, replication: int) -> RunState:
    """Read the state of a run's clients; without a path, of the newest run.

    Raises:
        NotFound: there is no such run, or none at all.
        Damaged: a file of it is missing or was changed.
        Refused: it is not a run of a broker's egress queues.
    """
    from qsctl.sim.listings.run_state import newest_run, read_run_state

    return read_run_state(newest_run() if run is None else run, replication)


def chosen(things: Iterable[_Named], pattern: str, kind: str, where: str) -> list[_Named]:
    """Return the objects whose names match a pattern, in their order.

    Raises:
        NotFound: none matches; the remedy lists similar names.
    """
    from qsctl.profiles.listings.wildcard import matches

    all_of_them = list(things)
    found = [thing for thing in all_of_them if matches(pattern, name_of(thing))]
    if not found:
        raise no_match([name_of(thing) for thing in all_of_them], pattern, kind, where)
    return found


def no_match(names: Sequence[str], pattern: str, kind: str, where: str) -> NotFound:
    """Return the error for a pattern that no name matches."""
    near = difflib.get_close_matches(pattern, list(dict.fromkeys(names))[:10_000], n=3, cutoff=0.5)
    some = near or list(dict.fromkeys(names))[:5]
    more = " and others" if len(set(names)) > len(some) else ""
    return NotFound(
        f"{where} has no {kind} {pattern!r}",
        remedy=f"There is {', '.join(some)}{more}; ? matches one character, * any text." if some else "",
    )


def name_of(thing: object) -> str:
    """Return the attribute `name` of an object."""
    name = getattr(thing, "name")  # noqa: B009 - the rows of different listings have no common base
    assert isinstance(name, str)
    return name


def only(listings: Listings, **kept: Sequence[object]) -> Listings:
    """Return a listing with only these fields, and the notes of the given one."""
    from qsctl.profiles.listings.model import Listings as Made

    return dataclasses.replace(Made(notes=listings.notes), **{name: tuple(value) for name, value in kept.items()})  # type: ignore[arg-type]
