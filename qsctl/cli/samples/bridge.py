"""`qsctl bridge`: move or copy samples to a queue of another service, and keep doing so."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.command import Commands
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples._bridge_results import Bridged, bridge_metrics
from qsctl.cli.samples.move import DryRunOption, data_of, require_one_type
from qsctl.cli.service_options import ANY_SERVICE, QueueArgument, SelectOption, TargetOptions
from qsctl.errors import PartlyDone, QsctlError, UsageError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.client.bridge.driver import BridgeDriver, BridgeEnds, BridgeState
    from qsctl.client.bridge.steps import Steps
    from qsctl.resource import ResourceIdentifier

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

_METRICS_EVERY_S: Final = 1.0


@dataclass(frozen=True)
class BridgeTargetOptions(OptionGroup):
    """The options of the service that the samples are for."""

    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="LOCATION",
            help="Location of the service of TO_QUEUE, written as --service is.",
            show_default="that of QUEUE",
            rich_help_panel="Service of TO_QUEUE",
        ),
    ] = ""
    to_state_dir: Annotated[
        Path | None,
        typer.Option(
            "--to-state-dir",
            help="Directory of the service of TO_QUEUE, if that is embedded.",
            show_default="that of QUEUE",
            rich_help_panel="Service of TO_QUEUE",
        ),
    ] = None
    to_target: Annotated[
        str,
        typer.Option(
            "--to-target",
            metavar="PATTERN",
            help="Application name of the service of TO_QUEUE, or a POSIX pattern.",
            rich_help_panel="Service of TO_QUEUE",
        ),
    ] = ANY_SERVICE


@dataclass(frozen=True)
class MirrorOptions(OptionGroup):
    """The options that make a bridge a mirror."""

    mirror: Annotated[
        bool,
        typer.Option("--mirror", help="Leave the samples in QUEUE, and copy them.", rich_help_panel="Mirror"),
    ] = False
    places: Annotated[
        str,
        typer.Option(
            "--places",
            metavar="QUEUE",
            help="Queue in the service of TO_QUEUE that stores how far the mirror has copied; no consumer may read it, "
            "and it must be as durable as TO_QUEUE.",
            show_default="none",
            rich_help_panel="Mirror",
        ),
    ] = ""
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of the mirror, under which its progress is stored in --places.",
            show_default="the names of both queues",
            rich_help_panel="Mirror",
        ),
    ] = ""


@COMMANDS.command(
    "bridge",
    examples=(
        "qsctl bridge Outgoing Orders --service dds:7 --to dds:8",
        "qsctl bridge Outgoing Orders --service dds:7 --to dds:8 --exclusive --metrics /var/lib/node_exporter/b.prom",
        "qsctl bridge Orders Orders --service dds:7 --to dds:8 --mirror --places Places",
        "qsctl bridge Orders Archive --to-state-dir /srv/archive --once",
    ),
)
def bridge(
    queue: QueueArgument,
    to_queue: Annotated[
        str,
        typer.Argument(
            metavar="TO_QUEUE", help="Queue that the samples are moved to, named as QUEUE is.", show_default=False
        ),
    ],
    exclusive: Annotated[
        bool,
        typer.Option(
            "--exclusive",
            help="Leave samples unflagged unless they may be in TO_QUEUE already; no consumer may read QUEUE.",
        ),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Run until nothing more can cross.")] = False,
    count: Annotated[
        int,
        typer.Option("--count", "-n", min=0, max=2**31 - 1, help="Number of samples after which to end; 0: no limit."),
    ] = 0,
    bridges: Annotated[
        int,
        typer.Option(
            min=1, max=15, metavar="N", help="Largest number of bridges that a sample crosses, this one included."
        ),
    ] = 1,
    select: SelectOption = "",
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the figures of the bridge, for the node exporter of Prometheus; replaced in one step.",
            show_default="none",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    *,
    as_mirror: MirrorOptions,
    target_service: BridgeTargetOptions,
    service: TargetOptions,
) -> Bridged:
    """Move samples to a queue of another service as they arrive, or copy them with --mirror, until SIGTERM or Ctrl-C.

    A sample leaves QUEUE once TO_QUEUE has stored it, and keeps its identity, related identities and the end of its
    lifespan. After a kill, start the command again, on any machine: nothing is lost, and what may arrive twice is
    flagged as redelivered. While TO_QUEUE is full or a service is away it waits. Exits with 0 when it is stopped. With
    --once, exits with 3 when TO_QUEUE refused some samples, with 7 when it refused all, and with 8 when a service did
    not answer. Exits with 7 when another mirror of its name is at work.
    """
    from qsctl.client import stopped_by_signals
    from qsctl.client.bridge.driver import BridgeDriver
    from qsctl.client.bridge.steps import BridgeSteps, mirror_steps, shovel_steps
    from qsctl.client.transfer import undelivered
    from qsctl.core.admin.resolve import short_name

    selector = checked_selector(select)
    _check_options(as_mirror, exclusive=exclusive)
    ends = _Ends(service, target_service)
    with ends.open() as opened:
        source, target, places = _checked(opened, ends, queue, to_queue, as_mirror.places, exclusive=exclusive)
    steps = BridgeSteps(bridges, count or None, exclusive, dry_run)
    mirror = as_mirror.name or f"{short_name(target)} from {short_name(source)}"
    run = os.urandom(8).hex()

    def make_steps() -> Steps:
        return shovel_steps(steps) if places is None else mirror_steps(steps, mirror, run)

    driver = BridgeDriver(
        ends.open,
        source,
        target,
        selector if places is not None else undelivered(selector),
        steps,
        make_steps,
        places,
        mirror,
        ends_at_rest=once or dry_run,
        closes_at_rest=ends.are_embedded,
        on_state=_note_state,
    )
    if metrics is not None:
        driver.on_progress = _metrics_writer(driver, metrics, short_name(source), short_name(target))
    try:
        with stopped_by_signals(driver):
            driver.run()
    except QsctlError as error:
        if not steps.counts.moved_count or not once:
            raise
        raise PartlyDone(
            f"{error.message}\n{steps.counts.moved_count} samples were transferred before.", remedy=error.remedy
        ) from None
    counts = steps.counts
    return Bridged(
        short_name(source),
        short_name(target),
        places is not None,
        counts.moved_count,
        counts.duplicate_count,
        counts.left_count,
        counts.refused_count,
        counts.refused_reason,
        driver.obstacle,
        driver.last_error,
        dry_run,
        ends_by_itself=once,
    )


@dataclass(frozen=True)
class _Ends:
    """The services of both queues; one connection if they are at one location."""

    service: TargetOptions
    to: BridgeTargetOptions

    @property
    def target_service(self) -> TargetOptions:
        return replace(
            self.service,
            service=self.to.to or self.service.service,
            state_dir=self.to.to_state_dir or self.service.state_dir,
            target=self.to.to_target,
        )

    @property
    def are_one(self) -> bool:
        """Return whether both services are at one location: one directory, or one domain."""
        first, second = self.service, self.target_service
        if self.service.service.startswith("dds:") and second.service.startswith("dds:"):
            return _domain(first.service) == _domain(second.service)
        is_directory = first.leaves_between_looks and second.leaves_between_looks
        return is_directory and first.state_dir.resolve() == second.state_dir.resolve()

    @property
    def are_embedded(self) -> bool:
        """Return whether one of the services is embedded, and must be closed for other commands during pauses."""
        return self.service.leaves_between_looks or self.target_service.leaves_between_looks

    @contextmanager
    def open(self) -> Iterator[BridgeEnds]:
        """Open both services; raises as `ServiceOptions.open`."""
        from qsctl.client.administration import Administration
        from qsctl.client.bridge.driver import BridgeEnds

        with self.service.open() as source:
            if self.are_one:
                yield BridgeEnds(source, Administration(source.connection, self.to.to_target))
            else:
                with self.target_service.open() as target:
                    yield BridgeEnds(source, target)


def _domain(location: str) -> int:
    from qsctl.client.dds_location import parse_dds_location

    return parse_dds_location(location.partition(":")[2])[0]


def _check_options(as_mirror: MirrorOptions, *, exclusive: bool) -> None:
    if as_mirror.mirror and not as_mirror.places:
        raise UsageError(
            "a mirror needs a queue for its place",
            remedy="Name one in the service of TO_QUEUE with --places; `qsctl create-queue` makes one.",
        )
    if not as_mirror.mirror and (as_mirror.places or as_mirror.name):
        given = "--places" if as_mirror.places else "--name"
        raise UsageError(f"{given} is for a mirror, and there is no --mirror", remedy="Add --mirror.")
    if as_mirror.mirror and exclusive:
        raise UsageError("--exclusive and --mirror are both given", remedy="A mirror needs no --exclusive.")


def _checked(
    ends: BridgeEnds, where: _Ends, queue: str, to_queue: str, places: str, *, exclusive: bool
) -> tuple[ResourceIdentifier, ResourceIdentifier, ResourceIdentifier | None]:
    """Return the queues of the source, the target and the places; None: it is a shovel.

    Raises:
        UsageError: two of them are one queue, their types differ, several services host one of them, or a queue that
            must have no consumers has some.
        NotFound: one does not exist.
    """
    from qsctl.client.transfer import require_one_place

    source, target = ends.source.queue_named(queue), ends.target.queue_named(to_queue)
    require_one_place(ends.source, source)
    require_one_place(ends.target, target)
    if source.bare == target.bare and where.are_one and _hosts(ends.source, source) & _hosts(ends.target, target):
        raise UsageError(f"{queue} and {to_queue} are one queue", remedy="Name two.")
    require_one_type(data_of(ends.source.hosted(), source), data_of(ends.target.hosted(), target))
    if exclusive:
        _require_no_consumer(ends.source, source, "--exclusive")
    if not places:
        return source, target, None
    kept = ends.target.queue_named(places)
    require_one_place(ends.target, kept)
    if kept.bare == target.bare or (kept.bare == source.bare and where.are_one):
        raise UsageError(f"{places} is bridged itself", remedy="Name a queue of its own for the places.")
    _require_no_consumer(ends.target, kept, "--places")
    return source, target, kept


def _hosts(administration: Administration, queue: ResourceIdentifier) -> set[str]:
    bare = str(queue.bare)
    data = administration.service_data()
    return {each.service for each in data if any(hosted.resource == bare for hosted in each.body.queues)}


def _require_no_consumer(administration: Administration, queue: ResourceIdentifier, option: str) -> None:
    if any(each.body.consumer_count for each in administration.statuses(queue)):
        raise UsageError(f"{option}: queue {queue} has consumers", remedy="End them, or name another queue.")


def _note_state(state: BridgeState, text: str) -> None:
    from qsctl.cli.output.render import note
    from qsctl.client.bridge.driver import BridgeState

    match state:
        case BridgeState.RUNNING:
            note("Samples cross again.")
        case BridgeState.BLOCKED:
            note(f"Warning: the target accepts nothing: {text}. Waiting.")
        case BridgeState.AWAY:
            note(f"Warning: {text}. Waiting.")
        case BridgeState.ENDED:
            pass


def _metrics_writer(driver: BridgeDriver, file: Path, source: str, target: str) -> Callable[[], None]:
    """Write the metrics; return a function that writes them again, if a second has passed or the state has changed.

    A failure after the first time is reported once, and holds no sample up.
    """
    from qsctl.cli._output_files import replace_text
    from qsctl.cli.output.render import note

    written_at_s, written_state, has_failed = 0.0, None, False

    def write() -> None:
        nonlocal written_at_s, written_state, has_failed
        now_s = time.time()
        if driver.state is written_state and written_at_s <= now_s < written_at_s + _METRICS_EVERY_S:
            return
        is_first, written_at_s, written_state = written_state is None, now_s, driver.state
        try:
            replace_text(file, bridge_metrics(driver, source, target, now_s))
        except UsageError as error:
            if is_first:
                raise
            if not has_failed:
                note(f"Warning: {error.message}")
            has_failed = True

    write()
    return write
