"""Scenario files: read, and the same once more from their canonical text; or refused with every problem named."""

from __future__ import annotations

import tempfile
from pathlib import Path

from qsctl.errors import QsctlError
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.xml import read_scenario
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b"<port ", b"<profile ", b"<group ", b"<traffic ", b"<poisson ", b"<constant ", b"<trace file=", b"<change ",
    b"<queue ", b"<service file=", b'name="', b'rate="', b'max-depth="', b"$(HOME)", b"&#0;", b"&#xD800;", b"1e999",
    b"-1", b"nan", b"<!DOCTYPE", b"<![CDATA[", b'encoding="UTF-16"', b"inf",
)  # fmt: skip

_folder = tempfile.TemporaryDirectory(prefix="qsctl-fuzz-scenario-", dir=MEMORY)


def one_input(data: bytes) -> None:
    path = Path(_folder.name, "s.xml")
    path.write_bytes(data)
    try:
        scenario = read_scenario(path, {}, {})
    except QsctlError as error:
        assert error.message
        return
    again = Path(_folder.name, "again.xml")
    again.write_text(scenario_text(scenario), encoding="utf-8")
    if scenario.workload is None:
        assert read_scenario(again, {}, {}) == scenario
