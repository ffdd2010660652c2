"""A service that has its configuration from another one: -cfgRemote [QS 4.2 and 2.14.1]."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.dds.cluster_commands import Shell
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess
from tests.processes import run

KEPT = "<service_qos><persistence><kind>PERSISTENT</kind></persistence></service_qos>"
pytestmark = pytest.mark.xdist_group("cluster")


def queues(qsctl: Shell, service: str) -> list[str]:
    found = qsctl.document("get", "data", "--target", service)["queues"]
    return sorted(each["queue_name"].rsplit("/", 1)[1] for each in found)


def remote(domain: int, *more: str) -> list[str]:
    return ["-cfgRemote", "-remoteAdministrationDomainId", str(domain), *more]


def serve(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "qsctl", "serve", *arguments], cwd=directory)


@pytest.mark.slow
def test_the_configuration_of_another_service_as_it_is_now_replaces_what_was_kept(tmp_path: Path) -> None:
    domain = claim_domain()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lender = ServiceProcess(tmp_path / "a", domain, "--app-name", "A", service=KEPT)
    try:
        qsctl = Shell(domain)
        qsctl("create-queue", "New", "--target", "A")
        borrower = ServiceProcess(
            tmp_path / "b",
            domain,
            "--app-name",
            "B",
            *remote(domain, "-persistentStoragePath", "."),
            is_file_named=False,
        )
        try:
            assert queues(qsctl, "B") == queues(qsctl, "A") == ["New", "Orders"]
            qsctl("create-queue", "Own", "--target", "B")
            assert queues(qsctl, "B") == ["New", "Orders", "Own"]
            assert borrower.stop() == 0
            borrower.start()
            assert queues(qsctl, "B") == ["New", "Orders"], "what it kept of its own is dropped"
            assert "configuration_not_in_force" not in borrower.log.read_text()
        finally:
            borrower.end()
        missing = serve(
            tmp_path / "b", "--app-name", "B", *remote(domain, "-cfgRemoteTimeout", "1", "-cfgName", "Nope")
        )
        assert missing.returncode == 8
        assert "gave a configuration named Nope within 1 s" in missing.stderr
        fallen_back = serve(
            tmp_path / "b", str(lender.file), "--interface", "lo", "--record", ".",
            *remote(domain, "-cfgRemoteTimeout", "1", "-cfgName", "Nope"),
        )  # fmt: skip
        assert "the files are used" in fallen_back.stderr
        assert "Nope" in fallen_back.stderr
        assert fallen_back.returncode == 1, "and the file has no such service"
    finally:
        lender.end()
        release_domain(domain)
