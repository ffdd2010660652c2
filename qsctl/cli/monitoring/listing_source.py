"""Where a listing comes from: a simulated run, or what was captured from a broker.

Decides: the newest run of `qsctl-runs` unless another source is named, and how names are matched.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from qsctl.cli.input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.errors import NotFound, UsageError

if TYPE_CHECKING:
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


def load_listing(file: Path) -> Listings:
    """Read a captured listing.

    Raises:
        NotFound: there is no such file.
        ListingError: it is no listing; names every problem.
    """
    from qsctl.profiles.listings.read import LIMIT_BYTES, read_listings

    if is_standard_input(file):
        data = typer.get_binary_stream("stdin").read(LIMIT_BYTES + 1)
        return read_listings(data, STANDARD_INPUT)
    with reading(file), file.open("rb") as stream:
        data = stream.read(LIMIT_BYTES + 1)
    return read_listings(data, str(file))


def load_run(run: Path | None, replication: int) -> RunState:
    """Read what a run knows of its clients.

    Raises:
        NotFound: there is no such run, or none at all.
        Damaged: a file of it is missing or was changed.
        Refused: it is no run of a broker's egress queues.
    """
    from qsctl.sim.listings.run_state import newest_run, read_run_state

    return read_run_state(newest_run() if run is None else run, replication)


def check_source(run: Path | None, listing: Path | None) -> None:
    """Refuse two sources.

    Raises:
        UsageError: both are named.
    """
    if run is not None and listing is not None:
        raise UsageError("--run and --listing are both given", remedy="Name one source.")


def chosen(things: Iterable[_Named], pattern: str, kind: str, where: str) -> list[_Named]:
    """Return the things whose name fits the pattern, in their order.

    Raises:
        NotFound: none does; the remedy lists names that are near.
    """
    from qsctl.profiles.listings.wildcard import matches

    all_of_them = list(things)
    found = [thing for thing in all_of_them if matches(pattern, name_of(thing))]
    if not found:
        raise no_match([name_of(thing) for thing in all_of_them], pattern, kind, where)
    return found


def no_match(names: Sequence[str], pattern: str, kind: str, where: str) -> NotFound:
    """Return the error of a name that nothing has."""
    near = difflib.get_close_matches(pattern, list(dict.fromkeys(names))[:10_000], n=3, cutoff=0.5)
    some = near or list(dict.fromkeys(names))[:5]
    more = " and others" if len(set(names)) > len(some) else ""
    return NotFound(
        f"{where} has no {kind} {pattern!r}",
        remedy=f"There is {', '.join(some)}{more}; ? stands for one character, * for any." if some else "",
    )


def name_of(thing: object) -> str:
    """Return the `name` of a dataclass that has one."""
    name = getattr(thing, "name")  # noqa: B009 - the rows of different listings have no common base
    assert isinstance(name, str)
    return name


def only(listings: Listings, **kept: Sequence[object]) -> Listings:
    """Return a listing of these things alone, with the notes of the whole."""
    from qsctl.profiles.listings.model import Listings as Made

    return dataclasses.replace(Made(notes=listings.notes), **{name: tuple(value) for name, value in kept.items()})  # type: ignore[arg-type]
