"""`--watch`: repeat a command that reads a service, at an interval.

Decides the instants of the repetitions, the treatment of a service that stops answering, and that an embedded service
is closed between them.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from qsctl.cli.caller import notes_go_to
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.output.results import Result
from qsctl.errors import NoAnswer, UsageError

if TYPE_CHECKING:
    from qsctl.cli.output.frames import Frame
    from qsctl.cli.service_options import TargetOptions
    from qsctl.client.administration import Administration

Looked = TypeVar("Looked", bound=Result)
DEFAULT_INTERVAL: Final = "2s"
_SHORTEST_S: Final = 0.1

WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch", rich_help_panel="Watch", help="Refresh until Ctrl-C; when piped, print one document a line."
    ),
]
IntervalOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        rich_help_panel="Watch",
        help="Time between two readings of --watch, a duration such as 500ms or 2s.",
        show_default=DEFAULT_INTERVAL,
    ),
]
LooksOption = Annotated[
    int,
    typer.Option(
        "--count", min=0, rich_help_panel="Watch", help="Number of looks after which --watch ends; 0: until Ctrl-C."
    ),
]


@dataclass(frozen=True)
class WatchOptions(OptionGroup):
    """The options of repeated reads: `--watch`, its interval and its count."""

    watch: WatchOption = False
    interval: IntervalOption = ""
    count: LooksOption = 0

    def looks(
        self, service: TargetOptions, title: str, look: Callable[[Administration], Looked]
    ) -> Looked | Iterator[Frame]:
        """Read the service once and return the result; with `--watch`, yield a frame for each read.

        Args:
            service: the observed service.
            title: the heading of each frame on a terminal.
            look: reads the service.

        Raises:
            UsageError: an option that is only valid with `--watch`, or an interval that is not valid.
        """
        if self.watch:
            from qsctl.cli.location import seconds

            interval_s = seconds(self.interval or DEFAULT_INTERVAL, "--interval")
            if interval_s < _SHORTEST_S:
                raise UsageError(f"--interval {self.interval} is too short", remedy="Give at least 100ms.")
            return _frames(service, title, look, interval_s, self.count)
        if self.interval or self.count:
            given = "--interval" if self.interval else "--count"
            raise UsageError(f"{given} concerns watching, and there is no --watch", remedy="Add --watch.")
        with service.open() as administration:
            return look(administration)


def _frames(
    service: TargetOptions, title: str, look: Callable[[Administration], Result], interval_s: float, count: int
) -> Iterator[Frame]:
    from qsctl.cli.output.frames import Frame

    seen: Result | None = None
    with contextlib.ExitStack() as opened:
        kept = opened.enter_context(service.open()) if service.service.startswith("dds:") else None
        number = 0
        due = 0.0
        while True:
            error = None
            try:
                if kept is not None:
                    seen = look(kept)
                else:
                    # The notes of opening the service were shown at the first read.
                    quiet = notes_go_to() if seen else contextlib.nullcontext()
                    with quiet, service.open() as administration:
                        seen = look(administration)
            except NoAnswer as silent:
                if seen is None or not sys.stdout.isatty():
                    raise
                error = silent
            yield Frame(seen, time.time_ns(), title, error)
            number += 1
            if number == count:
                return
            # The first read opens the service, which may take longer than an interval.
            due = max(due + interval_s, time.monotonic()) if number > 1 else time.monotonic() + interval_s
            time.sleep(max(0.0, due - time.monotonic()))
