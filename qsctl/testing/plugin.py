"""The plug-in of pytest: `qsctl_service`, and the marker of its queues.

pytest loads this module in every run of an environment that qsctl is installed in: it imports nothing of qsctl before
the fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from qsctl.testing.virtual_service import VirtualService

MARKER = "qsctl_queue"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(name, subscriber='SharedSubscriber', **settings): a queue that qsctl_service has for this test; "
        "settings are those of `qsctl create-queue`, such as max_delivery_retries=2 or response_timeout='30s'",
    )


@pytest.fixture(scope="session")
def qsctl_session_service() -> Iterator[VirtualService]:
    """Give the service that the tests of a process share, one after the other; use `qsctl_service`."""
    from qsctl.testing.virtual_service import VirtualService

    with VirtualService() as service:
        yield service


@pytest.fixture
def qsctl_service(request: pytest.FixtureRequest, qsctl_session_service: VirtualService) -> Iterator[VirtualService]:
    """Give a queuing service in this process, with the queues of the test's `qsctl_queue` markers, and no others.

    The application under test uses `qsctl.client` in the domain `qsctl_service.domain_id`. The queues are deleted
    behind the test, whatever became of it.
    """
    service = qsctl_session_service
    try:
        for marker in reversed(list(request.node.iter_markers(MARKER))):
            service.create_queue(*marker.args, **marker.kwargs)
        yield service
    finally:
        service.reset()
