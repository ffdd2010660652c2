"""`qsctl debug bundle`: what is in the file, and that no payload is."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.cli.administer.test_queue_commands import Shell

PAYLOAD = "a secret of somebody"


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    shell("create-queue", "Orders")
    shell("produce", "Orders", "--text", PAYLOAD)
    return shell


def test_a_bundle_has_what_support_asks_for_and_no_payload(qsctl: Shell, tmp_path: Path) -> None:
    log, out = tmp_path / "s.log", tmp_path / "b.zip"
    log.write_bytes(b"0" * (5 * 1024 * 1024) + b"the end")
    done = qsctl("debug", "bundle", str(out), "--log", str(log), "-o", "json")
    assert done.status == ExitStatus.DONE, done.err
    with zipfile.ZipFile(out) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert [each["name"] for each in json.loads(done.out)["parts"]] == list(parts)
    assert set(parts) == {
        "machine.json", "packages.json", "status.json", "data.json", "configuration.json", "files.json", "logs/1-s.log",
    }  # fmt: skip
    assert b"current_message_count" in parts["status.json"]
    assert "<queuing_service" in json.loads(parts["configuration.json"])[0]["xml"]
    assert "instance.json" in {each["name"] for each in json.loads(parts["files.json"])}
    assert parts["logs/1-s.log"].endswith(b"the end")
    assert len(parts["logs/1-s.log"]) == 4 * 1024 * 1024
    assert not any(PAYLOAD.encode() in octets for octets in parts.values())
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_what_cannot_be_had_is_named_and_the_rest_is_there(qsctl: Shell, tmp_path: Path) -> None:
    out = tmp_path / "b.zip"
    done = qsctl("debug", "bundle", str(out), "--log", "nowhere.log", "--metrics-url", "http://127.0.0.1:9/metrics")
    assert done.status == ExitStatus.PARTLY_DONE
    assert "Without logs/1-nowhere.log: " in done.out
    assert "Without metrics.txt: " in done.out
    with zipfile.ZipFile(out) as archive:
        assert "status.json" in archive.namelist()


def test_an_existing_file_is_not_overwritten(qsctl: Shell, tmp_path: Path) -> None:
    out = tmp_path / "b.zip"
    out.write_text("mine")
    assert qsctl("debug", "bundle", str(out)).status == ExitStatus.USAGE
    assert out.read_text() == "mine"
    assert qsctl("debug", "bundle", str(tmp_path / "c.zip"), "--metrics-url", "file:///etc/passwd").status == 2
