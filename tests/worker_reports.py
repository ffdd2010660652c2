"""Report of a test by a worker of pytest-xdist: one report instead of three if all of it passed.

Each report is serialized by the worker and read by the controller, which takes more than a millisecond of processor
time for a test. That the setup and teardown of a test passed is in no summary.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of a worker; report the call alone where setup and teardown passed, too."""
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    have_passed = all(each.passed for each in reports)
    for each in reports:
        if each.when == "call" or not have_passed:
            item.ihook.pytest_runtest_logreport(report=each)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
