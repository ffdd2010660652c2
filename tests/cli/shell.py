"""Commands in this process, against one state directory."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tests.commands import command_line


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


#: Held while a command runs: it has the standard streams of the whole process.
_STREAMS = threading.Lock()


class Shell:
    """Commands one after the other against one state directory; never two at once in a process."""

    def __init__(self, state_dir: Path) -> None:
        self._runner = CliRunner()
        self._app = command_line()
        self._environment = {"QSCTL_STATE_DIR": str(state_dir)}

    def __call__(self, *arguments: str, stdin: bytes | str | None = None) -> Outcome:
        assert _STREAMS.acquire(blocking=False), f"a command runs in this process beside {' '.join(arguments)!r}"
        try:
            done = self._runner.invoke(self._app, list(arguments), input=stdin, env=self._environment)
        finally:
            _STREAMS.release()
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)
