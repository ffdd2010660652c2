"""`qsctl what-if`: answer one question about a queue of any broker by simulation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._output_files import written
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import agree_to_cost
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.command_line import command_line
from qsctl.cli.simulation.options.foreign_queue import ForeignQueueOptions, drafted, read_in
from qsctl.cli.simulation.progress.long_run import YesOption
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.results.what_if import WhatIf
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.sim.brokers.draft import QueueDraft
    from qsctl.sim.brokers.listed.model import ForeignQueue, ForeignQueues
    from qsctl.sim.brokers.variation import Variation
    from qsctl.sim.figures import Figures
    from qsctl.sim.scenario.scenario import Scenario
    from qsctl.summary.sweeps.what_if import Enough

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

DEFAULT_REPLICATIONS: Final = 8
_FILES_MAX: Final = 10_000
_TIMED: Final = 2
"""Number of the run whose duration the total cost is estimated from: the first one includes compilation."""


@COMMANDS.command(
    "what-if",
    examples=(
        "qsctl what-if --broker sqs --arrivals 0.033/s --work lognormal:45s,p99=280s --vary visibility=30s..600s",
        "qsctl what-if --broker rabbitmq-quorum --consumers 4 --work exponential:20ms --set round-trip=5ms "
        "--vary prefetch=1..250",
        "qsctl what-if --broker jetstream --work 2s --consumers 3 --set ack_wait=30s --vary max_ack_pending=3..1000",
        "qsctl what-if --from queues.txt --queue orders --work exponential:50ms --vary consumers=1..16",
        "qsctl what-if --broker celery --work histogram:1s=95,10min=5 --vary prefetch=1,4 --target 'duplicates<1%'",
    ),
)
def what_if(
    vary: Annotated[
        str,
        typer.Option(
            metavar="SETTING=VALUES",
            help="Setting that is varied, in the broker's own words, with its values, as in prefetch=1,10,100, or two "
            "ends, as in visibility=30s..600s; the value in force is one of them in any case.",
            show_default="none: the queue as it is",
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            metavar="MEASURE<VALUE",
            help="Condition that is enough, as in duplicates<1%, lost<0.1% or time_to_done_p99<30s: the first value of "
            "which it is shown is the answer. A percentage is of the messages.",
            show_default="by the setting: duplicates or losses below a share, times near the best",
        ),
    ] = "",
    horizon: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Time that a run simulates.", show_default="long enough for 15,000 messages"
        ),
    ] = "",
    replications: Annotated[
        int, typer.Option(min=2, max=10_000, help="Number of runs of each value.")
    ] = DEFAULT_REPLICATIONS,
    confidence: Annotated[
        float, typer.Option(help="Probability that all intervals of the answer hold, between 0 and 1.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 1,
    out: Annotated[
        str,
        typer.Option(metavar="FILE", help="Scenario to write.", show_default="a new file, named as the queue"),
    ] = "",
    yes: YesOption = False,
    *,
    queue: ForeignQueueOptions,
) -> WhatIf:
    """Answer what a setting of a broker's queue does, by simulation, in a sentence with its error.

    The scenario is written to a file, for the commands that show more: simulate, sweep, size, compare and report. All
    values are simulated with the same arrivals. A value that is not given is the broker's default; one without a
    default is assumed, and listed as such.
    """
    from qsctl.cli.simulation.options.confidence import checked_confidence
    from qsctl.instant import parse_duration
    from qsctl.sim.brokers.draft import set_path
    from qsctl.sim.brokers.variation import is_ordered, longest_ns, parse_variation, with_value
    from qsctl.sim.kernel.compilations import compilation_timed
    from qsctl.summary.sweeps.what_if import answer_of, enough_of, measures_of

    checked_confidence(confidence)
    if not queue.is_given:
        raise UsageError("no queue is named", remedy="Name a preset with --broker, or a listing of a tool with --from.")
    if not queue.work and "work" not in queue.given():
        raise UsageError(
            "the time that a consumer works on a message is not known",
            remedy="Give it with --work, as in 250ms, exponential:2s or lognormal:45s,p99=280s (of mean and 99 %).",
        )
    found = queue.read(None)
    broker, listed = queue.chosen(found)
    variation = parse_variation(broker, vary) if vary else None
    horizon_ns = parse_duration(horizon) if horizon else None
    longest = longest_ns(variation) if variation else 0
    base = drafted(queue, found, {}, horizon_ns=horizon_ns, longest_ns=longest)
    in_force = ""
    if variation is not None:
        in_force = _in_force(base, variation, queue, listed)
        variation = with_value(variation, in_force)
    path = variation.setting.path if variation else ""
    measures = measures_of(path)
    enough = enough_of(target or None, measures[0])
    drafts = _drafts(queue, found, base, variation)
    folder = Path(out).parent
    _refuse_another_file(out, base.scenario_text(folder))
    scenarios = [(text, replace(read_in(each.scenario_text(folder), folder), seed=seed)) for text, each in drafts]
    with compilation_timed() as compile_s:
        runs = _simulated(scenarios, replications, yes)
    answer = answer_of(runs, measures, enough, confidence)
    shown = answer.chosen or answer.best
    draft = base if shown is None else dict(drafts)[shown.text]
    changes = draft.changes_from(base)
    file = _written(base if changes is not None else draft, out)
    more = command_line(
        "simulate", file, (("--replications", replications), ("--confidence", confidence)), {}, changes or {}
    )  # fmt: skip
    return WhatIf(
        file=file, broker=str(broker), setting=variation.setting.word if variation else "",
        path=set_path(path) if path else "", in_force=in_force, answer=answer,
        assumed=tuple(f"{each.word}={each.text}" for each in base.values if each.origin == "assumed"),
        notes=(*found.notes, *_notes_of_work(base, path, enough)), horizon_ns=base.horizon_ns,
        ordered=variation is None or is_ordered(variation),
        more=more, compile_s=compile_s(), source=_source(base, variation),
    )  # fmt: skip


def _notes_of_work(base: QueueDraft, path: str, enough: Enough) -> tuple[str, ...]:
    """Return a note if every message takes the same time: a large prefetch then costs less than with varying times."""
    from qsctl.sim.scenario.parts.work_time import WORK, WorkKind

    work = base.words["work"]
    is_near_best = enough.below is None and enough.measure.startswith("time_")
    if path != "consumer/prefetch" or not is_near_best or WORK.parse(work).kind is not WorkKind.CONSTANT:
        return ()
    return (
        f"Every message takes exactly {work} here, so that values of prefetch differ by little. Where some take much "
        f"longer, a small prefetch matters: give --work exponential:{work}, or lognormal:{work},p99=…",
    )


def _in_force(
    base: QueueDraft, variation: Variation, queue: ForeignQueueOptions, listed: ForeignQueue | None
) -> str:  # fmt: skip
    """Return the present value of the varied setting, in the broker's own spelling."""
    from qsctl.sim.brokers.draft import listed_text

    setting = variation.setting
    made = base.words[setting.word]
    given = [text for name, text in queue.given().items() if setting.is_called(name)]
    texts = (*variation.values, *given, listed_text(setting, listed), setting.default, made)
    return next(text for text in texts if text is not None and setting.scenario_text(text) == made)


def _drafts(
    queue: ForeignQueueOptions, found: ForeignQueues, base: QueueDraft, variation: Variation | None
) -> list[tuple[str, QueueDraft]]:
    """Return the draft of a scenario for each value, not yet written; a single one if nothing is varied."""
    if variation is None:
        return [("as it is", base)]
    word = variation.setting.word
    return [(text, drafted(queue, found, {word: text}, horizon_ns=base.horizon_ns)) for text in variation.values]


def _refuse_another_file(out: str, text: str) -> None:
    """Refuse, before anything is simulated, to replace a file with other content.

    Raises:
        UsageError: the file exists with other content.
    """
    if out and Path(out).exists() and not _is_the_same(Path(out), text):
        raise UsageError(f"{out} exists already", remedy="Name another file with --out.")


def _written(draft: QueueDraft, out: str) -> str:
    """Write a scenario to its file, or find a file that contains it already; return the file's name.

    Raises:
        UsageError: the file exists with other content.
    """
    text = draft.scenario_text(Path(out).parent)
    for name in [out] if out else [_numbered(draft.name, number) for number in range(1, _FILES_MAX)]:
        if not Path(name).exists():
            return written(text, name, force=False)
        if _is_the_same(Path(name), text):
            return name
    raise UsageError(f"{out or draft.name} exists already", remedy="Name another file with --out.")


def _numbered(name: str, number: int) -> str:
    stem = "".join(each if each.isalnum() or each in "-_." else "-" for each in name).strip(".")[:80] or "queue"
    return f"{stem}.xml" if number == 1 else f"{stem}-{number}.xml"


def _is_the_same(file: Path, text: str) -> bool:
    try:
        return file.is_file() and file.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _simulated(
    scenarios: Sequence[tuple[str, Scenario]], replications: int, yes: bool
) -> list[tuple[str, list[Figures]]]:  # fmt: skip
    """Return the queue's figures at each value, one per replication, with the same random numbers at each value.

    Raises:
        Declined: the runs would take over a minute, and the user answered no.
    """
    from qsctl.sim.replication import simulate_figures
    from qsctl.summary.sweeps.cost import Cost

    runs: list[tuple[str, list[Figures]]] = []
    total, done = len(scenarios) * replications, 0
    with task_progress("runs") as show_progress:
        show_progress(0, total)  # the first run of an installation takes long, as it compiles
        for text, changed in scenarios:
            assert changed.queue is not None
            name = changed.queue.name  # its dead letters are in another queue
            figures = []
            for number in range(replications):
                began = time.monotonic()
                figures.append(next(each for each in simulate_figures(changed, number) if each.queue == name))
                done += 1
                show_progress(done, total)
                if done == _TIMED:
                    show_progress.pause()
                    agree_to_cost(Cost(total - done, (total - done) * (time.monotonic() - began)), yes=yes)
            runs.append((text, figures))
    return runs


_SOURCES: Final = {"listed": "as listed", "given": "as given", "assumed": "as assumed"}


def _source(base: QueueDraft, variation: Variation | None) -> str:
    """Return in words where the setting's present value comes from."""
    if variation is None:
        return ""
    origins = [str(each.origin) for each in base.values if each.word == variation.setting.word]
    return _SOURCES.get(origins[0] if origins else "", "the default")
