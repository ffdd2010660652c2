"""One service at a time writes the stores of an application in a directory, and says who does [QS 2.14]."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings
from qsctl.errors import Refused
from qsctl.service.directory.embedded import open_embedded
from qsctl.storage.claim import Claim
from tests.processes import running
from tests.service.disk_trials import stores
from tests.service.pipelines import command, queue, service


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "data"
    place.mkdir()
    return place


HOLD = """
import sys, time
from multiprocessing import get_context
from pathlib import Path
from qsctl.storage.claim import Claim

def outlive(claim, seconds):
    print("holds", flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    claim = Claim(Path(sys.argv[1]), "QS", "app")
    claim.hold()
    if len(sys.argv) > 2:
        worker = get_context("spawn").Process(target=outlive, args=(claim, float(sys.argv[2])), daemon=True)
        worker.start()
        print(worker.pid, flush=True)
    else:
        print(0, flush=True)
    time.sleep(600)
"""


@contextmanager
def another_service(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that holds the stores; gives it, and the process id of its own process if it started one."""
    program = directory.parent / "hold.py"
    program.write_text(HOLD, encoding="utf-8")
    with running([sys.executable, program, directory, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())


def test_a_second_service_of_the_same_name_is_refused_with_the_holder_of_the_stores(directory: Path) -> None:
    with another_service(directory) as (process, _):
        with pytest.raises(Refused, match=f"service 'app', process {process.pid} .* uses the stores .* {directory}"):
            stores(directory)
        stores(directory, "another").close()
        stores(directory, prefix="X").close()


def test_a_service_that_was_killed_holds_nothing(directory: Path) -> None:
    with another_service(directory) as (process, _):
        process.send_signal(signal.SIGKILL)
        process.wait()
        stores(directory, wait_s=5.0).close()


def test_a_session_that_outlives_its_service_holds_the_stores_and_a_new_one_waits_for_it(directory: Path) -> None:
    with another_service(directory, "60") as (process, worker):
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n", "of the worker"
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(Refused, match="uses the stores"):
            stores(directory)
        ender = threading.Timer(0.5, os.kill, (worker, signal.SIGKILL))
        ender.start()
        stores(directory, wait_s=30.0).close()
        ender.join()


def test_an_embedded_service_and_a_served_one_exclude_each_other(tmp_path: Path, directory: Path) -> None:
    loop = service(directory, queue())
    configuration = _configuration(directory)
    with (
        pytest.raises(Refused, match="uses the stores of application 'app'"),
        open_embedded(tmp_path / "state", configuration=configuration, wait_s=0.2),
    ):
        pass
    loop.stores.close()
    with (
        open_embedded(tmp_path / "state", configuration=configuration),
        pytest.raises(Refused, match="uses the stores of application 'app'"),
    ):
        stores(directory)


def test_volatile_queues_claim_nothing_and_a_persistent_one_created_later_is_refused(directory: Path) -> None:
    from qsctl.core.admin.command import CreateQueue
    from qsctl.core.admin.reply import ReturnCode
    from qsctl.core.messages import CommandReply
    from tests.service.pipelines import SUBSCRIBER

    first, second = service(directory), service(directory)
    assert not list(directory.iterdir())
    (reply,) = first.turn([command(CreateQueue(SUBSCRIBER, queue()))]).messages
    assert isinstance(reply, CommandReply)
    assert reply.reply.retcode is ReturnCode.OK
    (reply,) = second.turn([command(CreateQueue(SUBSCRIBER, queue()))]).messages
    assert isinstance(reply, CommandReply)
    assert reply.reply.retcode is ReturnCode.ERROR
    assert "uses the stores" in reply.reply.text
    assert not second.engine.hosted.queues()
    first.stores.close()
    second.stores.close()


def test_a_link_in_the_place_of_the_lock_is_refused(tmp_path: Path, directory: Path) -> None:
    claim = Claim(directory, "QS", "app")
    claim.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="is not a plain file"):
        claim.hold()
    assert not (tmp_path / "elsewhere").exists()


def _configuration(directory: Path) -> object:
    from dataclasses import replace

    from qsctl.config.settings import ServiceConfiguration
    from qsctl.service.directory._embedded_settings import DEFAULT_SETTINGS

    settings = replace(DEFAULT_SETTINGS, application_name="app")
    return ServiceConfiguration("c", settings, filesystem=FilesystemSettings(directory=directory))
