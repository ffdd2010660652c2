"""State that the parts of the page share: sources, counters, the end of the server, options of the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from qsctl.web.desk import ServiceDesk
from qsctl.web.feed import PolledSource

if TYPE_CHECKING:
    from qsctl.cli.top.recorded import RunSource
    from qsctl.config.sample_types.types import TypeLibrary

STREAMS_MAX: Final = 32
"""Event streams at a time; a browser has one for each tab."""


class PageView(NamedTuple):
    """A view of the page: the name that the address and the module in `static` have, and its title."""

    name: str
    title: str


class AskedSources(NamedTuple):
    """Files of the command line that the view "What if" lists beside ready scenarios and presets."""

    scenarios: tuple[Path, ...] = ()
    profiles: tuple[str, ...] = ()
    """Files of client profiles, as `--client-profile` has them."""
    recordings: tuple[str, ...] = ()
    """Run folders of recordings."""


@dataclass(slots=True)
class WebContext:
    """The state of one server."""

    feeds: tuple[PolledSource, ...] = ()
    """The sources that are looked at, in the order of the page."""
    desk: ServiceDesk | None = None
    """Of the source `service`: how the service is asked."""
    types: TypeLibrary | None = None
    """The types by which contents are shown."""
    run: RunSource | None = None
    """A run or a recording, which is looked at at any instant."""
    netconfig: Path | None = None
    """The NetConfig of a site."""
    what_if: AskedSources = AskedSources()
    closed: list[Callable[[], None]] = field(default_factory=list)
    """Called when the server ends, by the parts that keep threads."""
    allow_changes: bool = False
    """Whether commands that change queues may be run from the page."""
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were refused, and streams that were ended, by their reason."""
    answered_count: int = 0
    """Requests that were let through."""
    stream_count: int = 0
    """Event streams that are open."""
    ending: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server ends: streams end with it."""
