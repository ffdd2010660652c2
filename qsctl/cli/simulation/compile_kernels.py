"""`qsctl compile`: compile the simulator's kernels for this processor before they are needed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block, TextBlock
from qsctl.cli.panels import MORE_PANEL
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.distribution import is_missing, missing
from qsctl.errors import ExitStatus, InvalidInput, Unavailable

COMMANDS: Final = Commands(panel=MORE_PANEL)

_REPORT: Final = re.compile(r"(\d+) of (\d+): .*\n?")
"""A line of `python -m qsctl.sim.ready_kernels` before each scenario."""


@dataclass(frozen=True)
class CompiledKernels(DeclaredResult):
    """The folder of compiled kernels that every run uses from now on."""

    folder: Annotated[str, "folder of the compiled kernels"]
    kernels: Annotated[int, "number of kernels, each for one list of argument types"]
    processor: Annotated[str, "processors that they run on, by LLVM's name of the least of them"]
    made: Annotated[bool, "whether they were compiled now; false: they were there"]

    def blocks(self) -> Sequence[Block]:
        """Return a sentence."""
        when = "" if self.made else " already"
        text = f"{self.folder} has {self.kernels} kernels for {self.processor}{when}: no run compiles."
        return [TextBlock(text, "good")]


@COMMANDS.command("compile", examples=("qsctl compile  # after an installation that brought no compiled kernels",))
def compile_kernels() -> CompiledKernels:
    """Compile the simulator's kernels now, for some two minutes; the first runs of each model compile nothing then.

    A wheel for one system brings them. They are kept in the user's cache, beside what a run compiles for itself, and
    are made again after an upgrade. `qsctl doctor` shows which are used.
    """
    if is_missing("numba") and (error := missing("numba")) is not None:
        raise error
    from qsctl.sim.kernel.jit import COMPILED
    from qsctl.sim.kernel.ready_made import damaged, first_usable, folders

    if not COMPILED:
        raise Unavailable("kernels are plain Python here", remedy="Unset NUMBA_DISABLE_JIT.")
    found = first_usable()
    if found is not None and not damaged(*found):
        return CompiledKernels(str(found[0]), len(found[1].entries), found[1].baseline, made=False)
    folder = folders()[-1] if found is None else found[0]
    _make(folder)
    found = first_usable()
    if found is None:
        raise Unavailable(
            f"{folder} has kernels that cannot be used here", remedy="Report it, with what qsctl doctor -o json prints."
        )
    return CompiledKernels(str(found[0]), len(found[1].entries), found[1].baseline, made=True)


def _make(folder: Path) -> None:
    """Compile the kernels in a new process, since only one that has compiled nothing yet can.

    Raises:
        InvalidInput: the folder cannot be written, or has other content.
        Unavailable: kernels cannot be compiled on this machine.
    """
    # -P: a folder named qsctl in the working directory must not be imported instead of the installation.
    command = [sys.executable, "-P", "-m", "qsctl.sim.ready_kernels", str(folder)]
    lines: list[str] = []
    with (
        task_progress("Compiling") as show_progress,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if (report := _REPORT.fullmatch(line)) is not None:
                    show_progress(int(report[1]), int(report[2]))
                else:
                    lines.append(line)
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return
    said = [line.strip() for line in lines if line.strip()] or [f"the compiler ended with {process.returncode}"]
    if said[0].startswith("Traceback"):
        raise Unavailable(f"the compiler failed: {said[-1]}", remedy="Runs compile for themselves. Report the failure.")
    if process.returncode == ExitStatus.NO:
        raise InvalidInput(said[0], remedy="Name a folder that you may write to: set NUMBA_CACHE_DIR or QSCTL_KERNELS.")
    raise Unavailable(said[-2] if len(said) > 1 else said[0], remedy=said[-1] if len(said) > 1 else "")
