"""Members, links, disks and clients fail at random; the clients' journals show whether a promise was broken.

`QSCTL_TEST_NEMESIS_S`: seconds of faults. `QSCTL_TEST_NEMESIS_SEED`: what is drawn; a run prints its seed.
`QSCTL_TEST_NAMESPACES=1`: members in network namespaces, so that links are cut and lose datagrams, too (needs root).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.campaigns import trials
from tests.dds.nemesis.driver import Nemesis, lines_of
from tests.dds.nemesis.hosts import hosts

SECONDS = trials("QSCTL_TEST_NEMESIS_S", 6, 900)
SEED = int(os.environ.get("QSCTL_TEST_NEMESIS_SEED", "0")) or time.time_ns() % 10**6
IS_NETWORKED = os.environ.get("QSCTL_TEST_NAMESPACES") == "1"

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.parametrize("instances", [3, 5])
def test_no_promise_is_broken_under_random_faults(tmp_path: Path, domain: int, instances: int) -> None:
    sys.stdout.write(f"QSCTL_TEST_NEMESIS_SEED={SEED} {SECONDS} s, {instances} members\n")
    with hosts(domain, is_networked=IS_NETWORKED) as where:
        nemesis = Nemesis(tmp_path, domain, where, SEED, instances=instances)
        try:
            report = nemesis.run(SECONDS)
        finally:
            nemesis.end()
    sys.stdout.write(report.text())
    assert not report.violations, "\n".join(lines_of(report))
