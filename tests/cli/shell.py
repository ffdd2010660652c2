"""Commands in this process, against one state directory."""

from __future__ import annotations

import json
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


class Shell:
    """Commands one after the other against one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._runner = CliRunner()
        self._app = command_line()
        self._environment = {"QSCTL_STATE_DIR": str(state_dir)}

    def __call__(self, *arguments: str, stdin: bytes | str | None = None) -> Outcome:
        done = self._runner.invoke(self._app, list(arguments), input=stdin, env=self._environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)
