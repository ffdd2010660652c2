"""Shared by the whole suite: hypothesis profiles, the `--rewrite` flag for golden files, a quiet environment."""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.campaigns import CAMPAIGN_VARIABLE
from tests.processes import end, start
from tests.worker_reports import pytest_runtest_protocol  # noqa: F401 - a hook
from tests.worker_server import IS_SUPPORTED, WorkerServer

ROOT = Path(__file__).parent.parent

# No test depends on the contexts of whoever runs it, nor on credentials.
os.environ["QSCTL_CONFIG"] = os.devnull
for name in [each for each in os.environ if each == "QSCTL_CONTEXT" or each.startswith("QSCTL_BROKER_")]:
    del os.environ[name]

# Hundreds of tests start `qsctl`: where nothing may keep what was compiled, each start compiles all of it anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

MEMORY = Path("/dev/shm")
FREE_BYTES_MIN = 4 << 30
"""The room in memory with which tests have their files there."""


def _keep_files_in_memory() -> None:
    """Let the tests have their files in memory, where a sync is nothing: they wait for tens of thousands.

    With `QSCTL_TEST_ON_DISK=1`, as in a campaign, or with a temporary folder that the caller names, they are on a disk.
    """
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or os.environ.get("QSCTL_TEST_ON_DISK") == "1" or not MEMORY.is_dir():
        return
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize >= FREE_BYTES_MIN and not found.f_flag & os.ST_NOEXEC:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


_keep_files_in_memory()

settings.register_profile(
    "default", deadline=None, max_examples=30, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "nightly", deadline=None, max_examples=10_000, print_blob=True, suppress_health_check=list(HealthCheck)
)
# The same code gets the same answer twice: new examples are looked for by whoever develops, not by what gates a change.
# Their number can be smaller then: the next run draws the same ones again.
settings.register_profile("repeatable", settings.get_profile("default"), derandomize=True, max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write golden files from what the code does; review the difference"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep groups in the order given below; left to itself, xdist puts those of few and long tests last.

    With `-m campaign` tests are as large as those of a campaign.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    if config.option.markexpr == "campaign":
        os.environ[CAMPAIGN_VARIABLE] = "1"
        if "HYPOTHESIS_PROFILE" not in os.environ:
            settings.load_profile("nightly")
    if hasattr(config, "workerinput"):
        # The last of what a worker does at its end: to take all its modules and objects apart would be seconds.
        atexit.register(os._exit, 0)
    gc.disable()  # what collecting the tests makes stays: looking through it again and again is a fifth of the time


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let hypothesis look for what refers to its random numbers: once, and while there are few objects.

    Files that are named are collected before what is in folders beside them: pytest 9.1 makes the folders anew for each
    such file, and tests of a folder that it has made twice lack the fixtures of its `conftest.py`.
    """
    session.config.args.sort(key=lambda each: len(Path(each.partition("::")[0]).absolute().parts))
    _use_hypothesis()


@settings(max_examples=1, database=None)
@given(st.none())
def _use_hypothesis(_: None) -> None: ...


def pytest_collection_finish() -> None:
    """Look for garbage again, but not in what collecting made: it is most of what there is, and stays."""
    gc.freeze()
    gc.enable()


ON_REAL_TIME = ("dds", "service", "transport")
"""Folders whose tests wait more than they compute: they begin first, beside Java, and none is left for the end."""

SETTINGS_OF_ITS_OWN = ("eventlog",)
"""Folders whose tests of Spark have settings that take another start of Java."""

LONG = ("world", "browser")
"""Folders with files of half a minute, which would end alone if they began last."""


def _is_quick(config: pytest.Config) -> bool:
    """Return whether slow tests are left out: where all tests, or folders, are asked for without naming slow ones."""
    asked = config.option.markexpr
    is_named = any(Path(each.partition("::")[0]).suffix == ".py" for each in config.args)
    return asked != "campaign" and "slow" not in asked and not is_named


def _quick_and_slow(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of an ordinary run and the others; of `slow(beyond=n)` the first n cases are quick."""
    quick: list[pytest.Item] = []
    slow: list[pytest.Item] = []
    seen: Counter[str] = Counter()
    for each in items:
        mark = each.get_closest_marker("slow")
        if mark is None:
            quick.append(each)
            continue
        function = each.nodeid.partition("[")[0]
        (quick if seen[function] < mark.kwargs.get("beyond", 0) else slow).append(each)
        seen[function] += 1
    return quick, slow


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests where `_is_quick`, and bring the others in order.

    In parallel a file stays with one worker; what needs Java begins first, in one group that starts it once.
    Tests that start a Java of their own have another group, by their mark: they need not wait for that one.
    """

    def rank(item: pytest.Item) -> int:
        folder = item.path.parent.name
        if item.get_closest_marker("spark") is not None:
            return 1 if folder in SETTINGS_OF_ITS_OWN else 0
        return next((2 + at for at, folders in enumerate((ON_REAL_TIME, LONG)) if folder in folders), 4)

    if _is_quick(config):
        quick, slow = _quick_and_slow(items)
        items[:] = quick
        config.hook.pytest_deselected(items=slow)
    items.sort(key=rank)
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("campaign")
        if item.get_closest_marker("xdist_group") is None:  # with two names a group would be that of one file again
            item.add_marker(pytest.mark.xdist_group("spark" if rank(item) <= 1 else str(item.path)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Have workers forked from one process that has imported the tests, and the kernels compiled beside it.

    Kernels are compiled where all tests of the simulator are asked for.
    """
    asked = [Path(each.partition("::")[0]).absolute() for each in config.args]
    is_whole = any((ROOT / "tests" / "sim").is_relative_to(each) for each in asked)
    if IS_SUPPORTED and all(each.popen and not each.python for each in specs):
        server = WorkerServer(start, config.invocation_params.args, "tests.prepared" if is_whole else "")
        config.add_cleanup(server.close)
        for each in specs:
            each.python = server.interpreter
    if is_whole:
        compiling = start([sys.executable, "-m", "tests.kernels"], is_fresh=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        config.add_cleanup(partial(end, compiling))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Refuse to run where groups are not kept: tests on real time would fail beside Java now and then, unexplained."""
    if node.config.getoption("dist") == "loadgroup" and not all("@" in each for each in ids):
        pytest.exit("this pytest-xdist does not keep groups of tests with this pytest: install pytest<9.2", 4)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the caller's shell reaches a test."""
    for name in [name for name in os.environ if name.startswith("QSCTL_")]:
        monkeypatch.delenv(name)
    for name in ("NDDS_QOS_PROFILES", "NDDSHOME", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark runs in this process, for all that the product can see: another test's session stays as it is."""
    monkeypatch.setattr("qsctl.summary.spark.session._running", None)
    monkeypatch.setattr("qsctl.summary.spark.session.session_beside", lambda *_: None)
