"""Fixtures of the tests over DDS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess, StartService


@pytest.fixture
def domain() -> Iterator[int]:
    """A DDS domain of the test's own."""
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def start_service(tmp_path: Path, domain: int) -> Iterator[StartService]:
    """Start a service in the test's domain; whatever still runs at the end is killed."""
    started: list[ServiceProcess] = []

    def start(*arguments: str, **parts: str) -> ServiceProcess:
        service = ServiceProcess(tmp_path, domain, *arguments, **parts)
        started.append(service)
        return service

    yield start
    for service in started:
        service.end()


@pytest.fixture
def run_python(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run a piece of Python as a process; whatever still runs at the end is killed by its id."""
    processes: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
