"""Links that are cut: three services and their programs in network namespaces of their own, on one bridge [QS 7.1.2].

It needs root and changes the network of the machine, so only `QSCTL_TEST_NAMESPACES=1` runs it; it takes a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dds.cluster import QUEUES, SERVICE
from tests.dds.namespaces import bridged, ip
from tests.dds.service_process import CONFIGURATION
from tests.patience import PATIENCE_S
from tests.processes import end, start

pytestmark = [
    pytest.mark.skipif(os.environ.get("QSCTL_TEST_NAMESPACES") != "1", reason="QSCTL_TEST_NAMESPACES=1 runs it"),
    pytest.mark.xdist_group("cluster"),
]
DOMAIN = 77
NAMES = ("A", "B", "C", "P")
ADDRESSES = [f"10.77.0.{number}" for number in range(1, len(NAMES) + 1)]
PEERS_FILE = Path(__file__).parent / "link_loss_peers.py"
_ROLE = re.compile(r"queue='P/S/Orders' role='(\w+)' epoch=(\d+)")


@pytest.fixture
def hub() -> Iterator[str]:
    """The namespace of the bridge; `v<NAME>` is the link of a namespace there, `e<NAME>` in its own."""
    with bridged(dict(zip(NAMES, ADDRESSES, strict=True)), lambda name: f"e{name}") as tag:
        yield tag


def test_nothing_is_lost_or_comes_twice_when_the_link_of_the_master_is_cut(hub: str, tmp_path: Path) -> None:
    logs = {name: tmp_path / f"{name}.log" for name in "ABC"}
    text = CONFIGURATION.format(
        domain=DOMAIN, name="Cluster_1", administration="", types="", subscriber="S",
        sessions='<session name="s"/>', queues=QUEUES, service=SERVICE.format(instances=3, sec=1, nanosec=0),
    )  # fmt: skip

    def inside(name: str, *words: str) -> list[str]:
        return ["ip", "netns", "exec", f"{hub}{name}", sys.executable, *words]

    def master(other_than: str = "") -> str:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            latest = {name: (_ROLE.findall(log.read_text()) or [("", "0")])[-1] for name, log in logs.items()}
            epochs = {name: int(epoch) for name, (role, epoch) in latest.items() if role == "master"}
            epochs.pop(other_than, None)
            if epochs:
                return max(epochs, key=lambda name: epochs[name])
            time.sleep(0.05)
        raise AssertionError("\n".join(log.read_text() for log in logs.values()))

    def program(role: str, seconds: int) -> subprocess.Popen[str]:
        words = (str(PEERS_FILE), role, str(DOMAIN), "eP", str(seconds), *ADDRESSES[:3])
        return start(inside("P", *words), stdout=subprocess.PIPE, text=True)

    with contextlib.ExitStack() as stack:
        for name in "ABC":
            where = tmp_path / name
            where.mkdir()
            (where / "c.xml").write_text(text)
            peers = [word for address in ADDRESSES for word in ("--peer", address)]
            words = ["-m", "qsctl", "serve", "c.xml", "--app-name", f"Cluster_1_{name}", "--interface", f"e{name}"]
            log = stack.enter_context(logs[name].open("ab"))
            service = start(inside(name, *words, "--verbosity", "3", "--lease", "2s", *peers), cwd=where, stderr=log)
            stack.callback(end, service)
        master()
        consumer, producer = program("consume", 60), program("produce", 30)
        stack.callback(end, consumer)
        stack.callback(end, producer)
        time.sleep(6)  # the load begins, then is cut
        for _ in range(2):
            cut = master()
            ip("-n", f"{hub}hub", "link", "set", f"v{cut}", "down")
            master(other_than=cut)
            time.sleep(3)
            ip("-n", f"{hub}hub", "link", "set", f"v{cut}", "up")
            time.sleep(4)
        written = json.loads(producer.communicate(timeout=120)[0])
        received = json.loads(consumer.communicate(timeout=120)[0])
    sys.stdout.write(f"{written}, {received}\n")
    assert written["rejected"] == 0
    assert received["distinct"] == written["accepted"] == written["written"]
    assert received["unflagged_twice"] == 0
