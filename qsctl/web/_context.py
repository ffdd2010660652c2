"""State that the parts of the page share: sources, counters, the shutdown of the server, options of the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from qsctl.web._desk import ServiceDesk
from qsctl.web._feed import PolledSource

if TYPE_CHECKING:
    from qsctl.cli.top.recorded import RunSource
    from qsctl.config.sample_types.types import TypeLibrary

STREAMS_MAX: Final = 32
"""Largest number of open event streams; a browser has one for each tab."""


class PageView(NamedTuple):
    """A view of the page: its name in the address and in `static`, and its title."""

    name: str
    title: str


class AskedSources(NamedTuple):
    """Files of the command line that the view "What if" lists with the built-in scenarios and presets."""

    scenarios: tuple[Path, ...] = ()
    profiles: tuple[str, ...] = ()
    """Files of client profiles, in the syntax of `--client-profile`."""
    recordings: tuple[str, ...] = ()
    """Run folders of recordings."""


@dataclass(slots=True)
class WebContext:
    """The state of one server."""

    feeds: tuple[PolledSource, ...] = ()
    """The polled sources, in the order of the page."""
    desk: ServiceDesk | None = None
    """Access to the service of the source `service`; None without one."""
    types: TypeLibrary | None = None
    """The types with which payloads are decoded for display."""
    run: RunSource | None = None
    """A run or a recording, which can be shown at any instant; None without one."""
    netconfig: Path | None = None
    """The path of a site's NetConfig; None without one."""
    what_if: AskedSources = AskedSources()
    closed: list[Callable[[], None]] = field(default_factory=list)
    """Functions that are called when the server ends, to stop threads."""
    allow_changes: bool = False
    """Whether commands that change queues may be run from the page."""
    refused: Counter[str] = field(default_factory=Counter)
    """Number of refused requests and of ended streams, by reason."""
    answered_count: int = 0
    """Number of accepted requests."""
    stream_count: int = 0
    """Number of open event streams."""
    ending: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server ends, so that streams end."""
