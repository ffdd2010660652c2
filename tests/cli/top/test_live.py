"""Looks at an embedded service: the notes of its opening, and the standard streams of other threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qsctl.cli.output.render import note
from qsctl.cli.service_options import TargetOptions
from qsctl.cli.top.live import LiveSource
from qsctl.client.administration import Administration
from tests.cli.shell import Shell


def test_a_look_gives_notes_to_the_screen_and_leaves_the_streams_of_other_threads(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell("create-queue", "Orders").status == 0
    before = sys.stderr
    streams = []

    @contextmanager
    def opened() -> Iterator[Administration]:
        note("Warning: an old\nkey")
        with TargetOptions(state_dir=tmp_path).open() as administration:
            streams.append(sys.stderr)
            yield administration
            streams.append(sys.stderr)

    source = LiveSource(opened, "embedded:", keeps_open=False)
    look = source.look()
    assert [row["name"] for row in look.rows] == ["DomainParticipant/SharedSubscriber/Orders"]
    assert look.note == "Warning: an old key"
    assert streams == [before, before]
