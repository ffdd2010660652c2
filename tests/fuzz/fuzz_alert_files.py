"""Files of alerts: alerts and reasons for those that are left out, or one error that names lines."""

from __future__ import annotations

import tempfile
from pathlib import Path

from qsctl.cli.monitoring._alert_file import read_alerts
from qsctl.cli.monitoring._check_engine import ENGINE_MEASURES
from qsctl.errors import InvalidInput
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b"{ALERT ", b"{ NAME x }", b"{ VALUE {error count} }", b"{ VALUE queue_messages }", b"{ SOURCE {a b} }",
    b"{ SOURCE * }", b"{ COMP {>= 10} }", b"{ WITH -1 }", b"{ FOR {nmin 5} }", b"{ FOR once }", b"}", b"{",
    b"{ WINDOW {* * * * * *} }", b"prologue\n", b"end_prologue\n", b"{ MODE actual }", b"\\", b'"', b"\xff", b"\0",
    b"999999999999999999",
)  # fmt: skip
SHORT_COUNT = 300
_FOLDER = tempfile.TemporaryDirectory(dir=MEMORY)
_MEASURES = list(ENGINE_MEASURES)


def one_input(data: bytes) -> None:
    path = Path(_FOLDER.name) / "x.alrt"
    path.write_bytes(data)
    try:
        found = read_alerts(path, {}, _MEASURES)
    except InvalidInput as error:
        assert len(error.message) < 100_000
        return
    assert found.alerts or found.left_out
    for each in found.alerts:
        assert each.value.measure in ENGINE_MEASURES
        assert 1 <= each.line <= data.count(b"\n") + 1
        assert (each.least_sources > 0, each.for_s >= 0) == (True, True)
        assert isinstance(each.holds(3.0), bool)
