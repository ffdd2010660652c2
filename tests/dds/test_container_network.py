"""The manifests of Kubernetes, with a network namespace in the place of each pod: the services find each other by name.

It needs root and changes the network of the machine, so only `QSCTL_TEST_NAMESPACES=1` runs it; it takes a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from qsctl.config.signing_keys import create_keys
from tests.cli.administer.containers import CLUSTER, CONTAINER, PORT, SET
from tests.dds.namespaces import bridged, ip
from tests.patience import PATIENCE_S, eventually
from tests.processes import end, run, start

pytestmark = [
    pytest.mark.skipif(os.environ.get("QSCTL_TEST_NAMESPACES") != "1", reason="QSCTL_TEST_NAMESPACES=1 runs it"),
    pytest.mark.xdist_group("cluster"),
]
PODS = [f"queuing-{at}" for at in range(SET["replicas"])]
ADDRESSES = {pod: f"10.78.0.{number}" for number, pod in enumerate([*PODS, "client"], 1)}

MOVED = "10.78.0.9"


def name_hosts(tag: str, pod: str, known: list[str], addresses: Mapping[str, str] = ADDRESSES) -> None:
    """Write the names that a pod can resolve: its /etc/hosts, as `ip netns exec` mounts it."""
    folder = Path(f"/etc/netns/{tag}{pod}")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{addresses[each]} {each}.queuing queuing" for each in known]
    (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))


@pytest.fixture
def pods() -> Iterator[str]:
    """Namespaces on one bridge, `eth0` in each; at first no name exists."""
    tag = ""
    try:
        with bridged(ADDRESSES, lambda _: "eth0") as tag:
            for pod in ADDRESSES:
                name_hosts(tag, pod, [])
            yield tag
    finally:
        for pod in ADDRESSES:
            shutil.rmtree(f"/etc/netns/{tag}{pod}", ignore_errors=True)


def test_the_members_find_each_other_by_name_and_serve_a_client(pods: str, tmp_path: Path) -> None:
    create_keys(tmp_path / "admin.key")
    create_keys(tmp_path / "cluster.key")
    file = tmp_path / "service.xml"
    file.write_text(CLUSTER.replace("/run/secrets/qsctl/admin.key", str(tmp_path / "admin.key")))

    def inside(pod: str, *words: str) -> list[str]:
        return ["ip", "netns", "exec", f"{pods}{pod}", sys.executable, "-m", "qsctl", *words]

    def started(pod: str) -> Callable[[], None]:
        volume = tmp_path / pod
        volume.mkdir(exist_ok=True)
        words = [
            each.replace("$(POD_NAME)", pod)
            .replace("/etc/qsctl/service.xml", str(file))
            .replace("/run/secrets/qsctl-cluster/cluster.key", str(tmp_path / "cluster.key"))
            for each in CONTAINER["args"]
        ]
        log = stack.enter_context((tmp_path / f"{pod}.log").open("ab"))
        process = start(inside(pod, *words), cwd=volume, stderr=log)
        stack.callback(end, process)
        return lambda: end(process)

    def answers(pod: str, path: str) -> int:
        code = f"import urllib.request as u; u.urlopen('http://127.0.0.1:{PORT}{path}', timeout=4)"
        return run(["ip", "netns", "exec", f"{pods}{pod}", sys.executable, "-c", code]).returncode

    def qsctl(*words: str) -> str:
        where = ("--service", "dds:0?interface=eth0&peer=queuing", "--timeout", f"{PATIENCE_S:g}s")
        done = run(inside("client", *words, *where), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with contextlib.ExitStack() as stack:
        ends = {pod: started(pod) for pod in PODS}
        assert eventually(lambda: all("peer_not_resolved" in (tmp_path / f"{pod}.log").read_text() for pod in PODS))
        for pod in ADDRESSES:
            name_hosts(pods, pod, PODS)
        assert eventually(lambda: all(answers(pod, "/healthz") == 0 for pod in PODS))
        assert eventually(lambda: all(answers(pod, "/readyz") == 0 for pod in PODS))
        key = ("--key-file", "admin.key")
        qsctl("produce", "Orders", "--text", "first")
        qsctl("create-queue", "New", "--type", "DDS::Octets", *key)
        ends[PODS[0]]()
        assert eventually(lambda: answers(PODS[1], "/readyz") == 0)
        assert "first" in qsctl("consume", "Orders")
        # A pod that starts again has another address, which the others never knew.
        ip("-n", f"{pods}{PODS[0]}", "addr", "del", f"{ADDRESSES[PODS[0]]}/24", "dev", "eth0")
        ip("-n", f"{pods}{PODS[0]}", "addr", "add", f"{MOVED}/24", "dev", "eth0")
        for pod in ADDRESSES:
            name_hosts(pods, pod, PODS, {**ADDRESSES, PODS[0]: MOVED})
        started(PODS[0])
        assert eventually(lambda: all(answers(pod, "/readyz") == 0 for pod in PODS))
        replicas = [json.loads(line) for line in qsctl("get", "replication", "-o", "jsonl").splitlines()]
        orders = {each["service"]: each["role"] for each in replicas if each["queue_name"].endswith("/Orders")}
        assert (set(orders), sorted(orders.values())) == (set(PODS), ["master", "slave", "slave"])
        assert {each["service"] for each in replicas if each["queue_name"].endswith("/New")} == set(PODS)
