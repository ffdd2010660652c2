"""`qsctl debug bundle`: what is in the file, and that no payload is."""

from __future__ import annotations

import json
import socket
import stat
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.cli.shell import Shell

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


@pytest.mark.parametrize(
    "url", ["http://[", "http://", "http://127.0.0.1:x/", "http://h:99999/", "http://a b/", "ftp://h"]
)
def test_what_is_no_address_is_refused_before_anything_is_written(qsctl: Shell, tmp_path: Path, url: str) -> None:
    done = qsctl("debug", "bundle", str(tmp_path / "b.zip"), "--metrics-url", url)
    assert done.status == ExitStatus.USAGE, done.err
    assert "is not an address" in done.err
    assert not (tmp_path / "b.zip").exists()


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """A port that answers the first connection so, whatever it is asked, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                for each in answers:
                    connection.sendall(each)

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-x\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"HTTP/1.1 500 No\r\n\r\n"],
    ids=["ssh", "nothing", "cut", "error"],
)
def test_what_is_no_metrics_port_costs_the_metrics_alone(qsctl: Shell, tmp_path: Path, answer: bytes) -> None:
    with answering(answer) as port:
        done = qsctl("debug", "bundle", str(tmp_path / "b.zip"), "--metrics-url", f"http://127.0.0.1:{port}/metrics")
    assert done.status == ExitStatus.PARTLY_DONE, done.err
    assert "Without metrics.txt: " in done.out


def test_the_metrics_of_a_service_are_in_the_bundle(qsctl: Shell, tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"up", b" 1.0"
    with answering(*answer) as port:
        done = qsctl("debug", "bundle", str(tmp_path / "b.zip"), "--metrics-url", f"http://127.0.0.1:{port}/metrics")
    assert done.status == ExitStatus.DONE, done.err
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert archive.read("metrics.txt") == b"up 1.0"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), RuntimeError("bug")])
def test_half_a_bundle_is_not_left(
    qsctl: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    try:
        done = qsctl("debug", "bundle", str(tmp_path / "b.zip"))
    except BaseException as raised:
        assert raised is error
    else:
        assert done.status != ExitStatus.DONE
    assert not (tmp_path / "b.zip").exists()
    monkeypatch.undo()
    assert qsctl("debug", "bundle", str(tmp_path / "b.zip")).status == ExitStatus.DONE
