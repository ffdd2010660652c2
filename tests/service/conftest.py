"""Shared by the tests of services: one in turns, with a queue of each kind that is stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.service.run.loop import ServiceLoop
from tests.service.pipelines import IN_MEMORY, ON_DISK, queue, service


@pytest.fixture(params=["in-memory", "on-disk"])
def loop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceLoop]:
    """Its queue keeps payloads in memory, or on disk only."""
    loop = service(tmp_path, queue(persistence=IN_MEMORY if request.param == "in-memory" else ON_DISK))
    yield loop
    loop.stores.close()
