"""Fixtures of the tests over DDS."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess, StartService
from tests.patience import make_wrappers_patient
from tests.processes import running


@pytest.fixture
def domain() -> Iterator[int]:
    """A DDS domain of the test's own."""
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture(autouse=True)
def patient_wrappers(monkeypatch: pytest.MonkeyPatch) -> None:
    make_wrappers_patient(monkeypatch)


@pytest.fixture
def start_service(tmp_path: Path, domain: int) -> Iterator[StartService]:
    """Start a service in the test's domain; whatever still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str, **parts: str) -> ServiceProcess:
            service = ServiceProcess(tmp_path, domain, *arguments, **parts)
            stack.callback(service.end)
            return service

        yield start


@pytest.fixture
def run_python(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run a piece of Python as a process; whatever still runs at the end is killed by its id."""
    with contextlib.ExitStack() as stack:

        def run(code: str, *arguments: str) -> subprocess.Popen[str]:
            process = running(
                [sys.executable, "-c", code, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path,
            )  # fmt: skip
            return stack.enter_context(process)

        yield run
