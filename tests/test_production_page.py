"""The page `production`, typed from top to bottom in an empty directory: it prints what it shows."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.dds.domains import claim_domain, descriptors_of, release_domain
from tests.documents import page, tour
from tests.processes import run

PAGE = page("production")
DOMAIN, PORT = "57", "9100"
OF_A_SHELL = re.compile(r"[|;&<>$]")
VARIES = (
    (re.compile(r"process \d+"), "process PID"),
    (re.compile(r"^[0-9a-f]{8}   ", re.MULTILINE), "NUMBER     "),
    (re.compile(r"answered in [\d.]+ m?s"), "answered in TIME"),
    (re.compile(r"\S+/config\.toml"), "CONFIG"),
    (re.compile(r"[─ ]+"), " "),
)


@pytest.fixture
def domain() -> Iterator[int]:
    """A DDS domain of the test's own."""
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def type_in(tmp_path: Path, domain: int, port: int) -> Iterator[Callable[[str], str]]:
    """Type a command of the page; what it prints. The service that it started ends with the test."""
    home = tmp_path / "home"
    where = tmp_path / "queuing"
    home.mkdir()
    where.mkdir()
    (xml,) = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
    (where / "service.xml").write_text(placed(xml, domain, port))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "QSCTL_CONFIG": str(home / "config.toml"),
        "COLUMNS": "120",
        "LANG": "C.UTF-8",
    }

    def typed(command: str) -> str:
        command = placed(command, domain, port)
        program, *words = shlex.split(command)
        if program == "qsctl" and not OF_A_SHELL.search(command):
            started = [sys.executable, "-m", "qsctl", *words]
        else:
            started = ["bash", "-c", command]
        done = run(started, cwd=where, env=environment, stderr=subprocess.STDOUT, pass_fds=descriptors_of(domain))
        return "\n".join(line.rstrip() for line in done.stdout.rstrip("\n").splitlines())

    yield typed
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.kill(int((where / "service.pid").read_text()), signal.SIGKILL)


def placed(text: str, domain: int, port: int) -> str:
    """A text of the page with a domain and a port that are free here."""
    text = text.replace(f"dds:{DOMAIN}", f"dds:{domain}").replace(f"<domain_id>{DOMAIN}<", f"<domain_id>{domain}<")
    return text.replace(PORT, str(port))


def without_what_varies(text: str) -> str:
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return text


@pytest.mark.slow
def test_the_hour_prints_what_its_page_shows(type_in: Callable[[str], str], domain: int, port: int) -> None:
    typed = tour(PAGE)
    assert len(typed) >= 25
    for command, output in typed:
        if (
            (needed := command.split()[0]) not in ("kill", "sleep")
            and shutil.which(needed) is None
            and needed != "qsctl"
        ):
            continue
        printed = type_in(command)
        assert without_what_varies(printed) == without_what_varies(placed(output, domain, port)), command


def test_every_metric_to_watch_is_served() -> None:
    from qsctl.service.process.metrics import documented

    named = set(re.findall(r"qsctl_[a-z_]+", PAGE.partition("## What to watch")[2]))
    assert len(named) >= 8
    assert named <= {name for name, *_ in documented()}
