"""`--broker` and `--from` of `init` and `what-if`: a queue of another broker, by a preset and by listings of its tools.

Decides which queue is used if a file lists several, and that a listed queue's kind has precedence over a preset of
another product.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import NotFound, UsageError
from qsctl.sim.brokers.kinds import BrokerKind

if TYPE_CHECKING:
    from qsctl.sim.brokers.draft import QueueDraft
    from qsctl.sim.brokers.listed.model import ForeignQueue, ForeignQueues
    from qsctl.sim.scenario.scenario import Scenario

PANEL: Final = "Queue of another broker"
BrokerKindOption = Annotated[
    BrokerKind | None,
    typer.Option(
        "--broker",
        metavar="PRESET",
        rich_help_panel=PANEL,
        help=f"Preset whose names and defaults the queue has: {', '.join(BrokerKind)}.",
        show_default="that of what --from lists",
    ),
]
ListedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        rich_help_panel=PANEL,
        help="Output of `rabbitmqctl list_queues` as text or JSON, definitions.json, `nats consumer info --json`, "
        "`nats stream info --json`, SQS queue attributes in JSON or `kafka-consumer-groups --describe`; -: standard "
        "input. May be repeated: a stream beside its consumer, or the same again, captured later, for the rate between "
        "the two.",
    ),
]
QueueNameOption = Annotated[
    str,
    typer.Option(
        "--queue", metavar="NAME", rich_help_panel=PANEL, help="Queue of those that --from lists.",
        show_default="the only one",
    ),
]  # fmt: skip
ArrivalsOption = Annotated[
    str,
    typer.Option(
        metavar="RATE", rich_help_panel=PANEL, help="Rate of arrivals, as in 0.033/s or 90/min.",
        show_default="as listed, else so that the consumers are busy for 70 % of the time",
    ),
]  # fmt: skip
WorkOption = Annotated[
    str,
    typer.Option(
        metavar="TIME", rich_help_panel=PANEL,
        help="Time that a consumer works on a message: 250ms, exponential:2s, lognormal:45s,p99=280s, "
        "gamma:45s,cv=0.5, uniform:1s..3s, histogram:1s=20,2s=50 or empirical:FILE.csv.",
        show_default="100ms, for init alone",
    ),
]  # fmt: skip
ConsumersOption = Annotated[
    str,
    typer.Option(
        metavar="COUNT", rich_help_panel=PANEL, help="Number of consumers.",
        show_default="as listed, else so that they are busy for at most 70 % of the time",
    ),
]  # fmt: skip
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SETTING=VALUE",
        rich_help_panel=PANEL,
        help="Setting in the broker's own words, as in VisibilityTimeout=60, prefetch=20 or max_ack_pending=100, or "
        "one of fails, poison, servers, round-trip, size; may be repeated.",
    ),
]


@dataclass(frozen=True)
class ForeignQueueOptions(OptionGroup):
    """The options of a queue of another broker, and of its load."""

    broker: BrokerKindOption = None
    listed_files: ListedOption = None
    queue: QueueNameOption = ""
    arrivals: ArrivalsOption = ""
    work: WorkOption = ""
    consumers: ConsumersOption = ""
    settings: SettingOption = None

    @property
    def is_given(self) -> bool:
        """Return whether a preset or a listing is given."""
        return self.broker is not None or bool(self.listed_files)

    @property
    def stray(self) -> str:
        """Return the first given option that requires a preset or a listing; empty if there is none."""
        given = {
            "--queue": self.queue, "--arrivals": self.arrivals, "--work": self.work, "--consumers": self.consumers,
            "--set": self.settings,
        }  # fmt: skip
        return next((option for option, value in given.items() if value), "")

    def given(self) -> dict[str, str]:
        """Return the values that the command line gives, by the names of settings.

        Raises:
            UsageError: a setting is not of the form SETTING=VALUE, or is given twice, or the rate has no unit.
        """
        from qsctl.sim.brokers.draft import parse_settings

        if self.arrivals.strip().replace(".", "", 1).isdigit():
            raise UsageError(
                f"--arrivals {self.arrivals!r} has no unit",
                remedy=f"Write {self.arrivals.strip()}/s for messages a second, or {self.arrivals.strip()}/min.",
            )
        load = {"arrivals": self.arrivals, "work": self.work, "consumers": self.consumers}
        found = {word: text for word, text in load.items() if text}
        for word, text in parse_settings(self.settings or ()).items():
            if word in found:
                raise UsageError(f"{word} is given twice", remedy="State it once.")
            found[word] = text
        return found

    def read(self, seconds: float | None) -> ForeignQueues:
        """Read the listings; empty without files.

        Args:
            seconds: time between two files of the same queue; None for the times in the files.

        Raises:
            NotFound: a file does not exist.
            InvalidFile: a file is not a known listing.
        """
        from qsctl.sim.brokers.listed.model import joined

        return joined([_read(each) for each in self.listed_files or ()], seconds)

    def chosen(self, found: ForeignQueues) -> tuple[BrokerKind, ForeignQueue | None]:
        """Return the broker whose preset applies, and the selected queue; None without listings.

        Raises:
            UsageError: several queues are listed and none is named, or the preset is of another product.
            NotFound: no queue has the name.
        """
        if not found.queues:
            assert self.broker is not None
            return self.broker, None
        queue = self._named(found)
        if self.broker is None or self.broker is queue.broker:
            return queue.broker, queue
        if self.broker.partition("-")[0] != queue.broker.partition("-")[0]:
            raise UsageError(
                f"--broker {self.broker} is not the broker of the listing, which is {queue.broker}",
                remedy="Leave it out.",
            )
        return self.broker, queue

    def _named(self, found: ForeignQueues) -> ForeignQueue:
        named = [each for each in found.queues if self.queue in {"", each.name}]
        if len(named) == 1:
            return named[0]
        names = ", ".join(each.name for each in found.queues[:_SHOWN])
        more = f" and {len(found.queues) - _SHOWN} more" if len(found.queues) > _SHOWN else ""
        if not named:
            raise NotFound(f"no queue {self.queue!r} is listed", remedy=f"There are {names}{more}.")
        what = f"{len(named)} queues are listed" if not self.queue else f"{len(named)} queues are called {self.queue}"
        raise UsageError(what, remedy=f"Name one with --queue: {names}{more}.")

    @property
    def source(self) -> str:
        """Return the names of the listings as text."""
        return " and ".join(Path(each).name if each != "-" else STANDARD_INPUT for each in self.listed_files or ())


_SHOWN: Final = 20


def drafted(
    options: ForeignQueueOptions,
    found: ForeignQueues,
    changes: Mapping[str, str],
    *,
    horizon_ns: int | None = None,
    longest_ns: int = 0,
) -> QueueDraft:
    """Return the draft of a scenario for the selected queue, with these settings changed.

    Raises:
        QsctlError: as raised by `ForeignQueueOptions.chosen` and `draft_of`.
    """
    from qsctl.sim.brokers.draft import draft_of, find_setting

    broker, queue = options.chosen(found)
    given = options.given()
    words = {find_setting(broker, name).word for name in changes}
    kept = {name: text for name, text in given.items() if find_setting(broker, name).word not in words}
    return draft_of(
        broker, {**kept, **changes}, queue, source=options.source, horizon_ns=horizon_ns, longest_ns=longest_ns
    )


def read_in(text: str, folder: Path) -> Scenario:
    """Return the scenario of a text, read by way of a temporary file in the folder, whose files it may name.

    Raises:
        InvalidFile: the scenario is not valid.
        UsageError: the folder does not exist or is not writable.
    """
    from qsctl.sim.scenario.xml import read_scenario

    try:
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".xml", encoding="utf-8", delete=False) as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to: {error.strerror}", remedy="Name another file.") from None
    try:
        return read_scenario(Path(stream.name))
    finally:
        Path(stream.name).unlink()


def _read(place: str) -> ForeignQueues:
    from qsctl.sim.brokers.listed.read import LIMIT_BYTES, read_queues

    file = Path(place)
    if is_standard_input(file):
        return read_queues(typer.get_binary_stream("stdin").read(LIMIT_BYTES + 1), STANDARD_INPUT)
    with reading(file), file.open("rb") as stream:
        data = stream.read(LIMIT_BYTES + 1)
    return read_queues(data, str(file))
