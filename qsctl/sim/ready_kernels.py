"""`python -m qsctl.sim.ready_kernels [FOLDER]`: compile the kernels to machine code that an installation ships.

For builders of images and wheels whose users need neither a compiler nor a writable folder; `qsctl compile` calls it
for users. It simulates ready scenarios of every compiled model, one with a timed change of G-1's limit, and runs that
`sim.splitting` branches, and writes the functions that numba compiled for them as object files; other signatures of a
kernel are compiled at their first use. It takes two minutes of one processor. Before each scenario it prints one line
with its number, their total and its name.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from qsctl.errors import InvalidInput, Unavailable
from qsctl.sim.kernel.ready_made import FORMAT, INDEX, INSTALLED, KernelIndex

SCENARIOS: Final = (
    "burst",
    "guaranteed",
    "ingress",
    "slow-reader",
    "slow-subscriber",
    "neighbor",
    "web-messaging",
    "trace-tibco",
    "work-queue",
    "prefetch",
    "dead-messages",
    "clinic",
    "ward",
)
"""Together with what `_others` simulates they call every kernel of a simulation: `tests/sim/test_ready_made.py`."""

Report = Callable[[int, int, str], None]
"""Called before each scenario with the number done, the number of all, and its name."""


def make(folder: Path, scenarios: tuple[str, ...] = SCENARIOS, report: Report = lambda *_: None) -> KernelIndex:
    """Compile the kernels that scenarios use for the baseline CPU of this architecture, and write them to a folder.

    The process must not have compiled a kernel before. The folder is replaced as a whole.

    Raises:
        InvalidInput: the folder cannot be written, or contains other files.
        Unavailable: machine code is not shared on this architecture, or llvmlite is too old.
    """
    import llvmlite  # type: ignore[import-untyped]
    from llvmlite import binding

    from qsctl.sim.kernel.cache_directory import sources_digest
    from qsctl.sim.kernel.object_code import compile_for, made_kernels
    from qsctl.sim.kernel.processor import best_baseline

    if (baseline := best_baseline()) is None:
        raise Unavailable("ready-made kernels are for x86-64 and 64-bit ARM: elsewhere each machine compiles its own")
    if folder.exists() and not (folder / INDEX).is_file() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} has other files: name a new folder, or one of ready-made kernels")
    if not can_make():
        raise Unavailable(
            f"llvmlite {llvmlite.__version__} loads ready-made kernels and cannot make them",
            remedy="Make them with numba 0.62 or newer: what is made runs with any version.",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Before the work: that the folder cannot be written is known at once.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as begun:
            made = Path(begun) / folder.name
            made.mkdir()
            compile_for(baseline)
            _simulate(scenarios, report)
            entries = []
            for entry, data in made_kernels():
                (made / entry.file).write_bytes(data)
                entries.append(entry)
            index = KernelIndex(
                FORMAT,
                sources_digest(),
                str(binding.get_process_triple()),
                baseline.name,
                tuple(sorted(baseline.features)),
                tuple(entries),
            )
            _write_index(made, index)
            if folder.exists():
                shutil.rmtree(folder)
            made.rename(folder)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}") from error
    return index


def can_make() -> bool:
    """Return whether the installed llvmlite can remove unused code, as version 0.45 and newer can."""
    from llvmlite.binding import newpassmanagers  # type: ignore[import-untyped]

    return hasattr(newpassmanagers.ModulePassManager, "add_strip_dead_prototype_pass")


def _write_index(folder: Path, index: KernelIndex) -> None:
    import msgspec

    (folder / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)))


def _simulate(scenarios: tuple[str, ...], report: Report) -> None:
    from qsctl.eventlog.location import location
    from qsctl.sim.scenario.xml import find_scenario
    from qsctl.sim.simulate import simulate

    for each in scenarios:
        find_scenario(each)
    others = _others()
    total = len(scenarios) + len(others)
    with tempfile.TemporaryDirectory() as runs:
        for number, each in enumerate(scenarios):
            report(number, total, each)
            simulate(each, replications=1, level="messages", out=location(str(Path(runs) / each)))
    for number, (name, run) in enumerate(others, len(scenarios)):
        report(number, total, name)
        run()


def _others() -> list[tuple[str, Callable[[], object]]]:
    """Return named runs of kernels that no ready scenario reaches: a changed limit of G-1, and branching runs."""
    return [
        ("a changed limit of G-1", _change_a_limit),
        ("rare events of the model solace", lambda: _split("burst", "loss_ratio(D-1)")),
        ("rare events of the model tibco", lambda: _split("trace-tibco", "loss_ratio(egress)")),
        ("rare events of shared reader queues", lambda: _split("prefetch", "P(high_water_mark(Ahead1)>=20)", "2s")),
    ]


def _change_a_limit() -> None:
    from qsctl.sim.replication import simulate_counters
    from qsctl.sim.scenario.scenario import TimedChange
    from qsctl.sim.simulate import open_scenario

    scenario = open_scenario("guaranteed", {}, {"horizon": "400ms"})
    change = TimedChange(200_000_000, "profile[throttled]/queue[G-1]/max-depth", "80")
    simulate_counters(dataclasses.replace(scenario, changes=(change,)))


def _split(name: str, text: str, horizon: str = "20ms") -> None:
    from qsctl.sim.simulate import open_scenario
    from qsctl.sim.splitting.branchable import trajectory_of
    from qsctl.sim.splitting.question import parse_question
    from qsctl.sim.splitting.restart import Levels, split_run

    question = parse_question(text)
    run = trajectory_of(open_scenario(name, {}, {"horizon": horizon}), 0, question)
    split_run(run, question, Levels((2,), (2,)))


def main(arguments: list[str]) -> int:
    """Compile the kernels into the named folder, or into the installation; return the exit status."""
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        sys.stderr.write("usage: python -m qsctl.sim.ready_kernels [FOLDER]\n")
        return 2
    folder = Path(arguments[0]) if arguments else INSTALLED
    try:
        index = make(folder, report=_print_report)
    except (InvalidInput, Unavailable) as error:
        sys.stderr.write(f"{error}\n{error.remedy or ''}\n")
        return int(error.exit_status)
    sys.stdout.write(f"{folder}: {len(index.entries)} kernels for {index.baseline}\n")
    return 0


def _print_report(done: int, total: int, name: str) -> None:
    sys.stdout.write(f"{done} of {total}: {name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # numba's cache keeps machine code for this machine, and not what an object file is made of: none is read here.
    os.environ["NUMBA_CACHE_DIR"] = os.devnull + "/none"
    os.environ["QSCTL_KERNELS"] = os.devnull
    sys.exit(main(sys.argv[1:]))
