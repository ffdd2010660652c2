"""The pytest plug-in: the fixture `qsctl_service`, and the marker `qsctl_queue` that declares its queues.

pytest loads this module in every run of an environment in which qsctl is installed; therefore nothing of qsctl is
imported before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from qsctl.testing._virtual_service import VirtualService

MARKER = "qsctl_queue"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `qsctl_queue`."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(name, subscriber='SharedSubscriber', **settings): a queue that qsctl_service has for this test; "
        "settings are those of `qsctl create-queue`, such as max_delivery_retries=2 or response_timeout='30s'",
    )


@pytest.fixture(scope="session")
def qsctl_session_service() -> Iterator[VirtualService]:
    """Provide the service that all tests of a process use in turn; tests use the fixture `qsctl_service` instead."""
    from qsctl.testing._virtual_service import VirtualService

    with VirtualService() as service:
        yield service


@pytest.fixture
def qsctl_service(request: pytest.FixtureRequest, qsctl_session_service: VirtualService) -> Iterator[VirtualService]:
    """Provide a queuing service in this process that has the queues of the test's `qsctl_queue` markers, and no others.

    The application under test uses `qsctl.client` in the domain `qsctl_service.domain_id`. The queues are deleted after
    the test, whether it passed or failed.
    """
    service = qsctl_session_service
    try:
        for marker in reversed(list(request.node.iter_markers(MARKER))):
            service.create_queue(*marker.args, **marker.kwargs)
        yield service
    finally:
        service.reset()
