"""Support for tests of applications that use queues: a service in the process of the tests, under virtual time.

In: pytest markers, and the calls of the application under test to `qsctl.client`. Out: the samples in the queues.
Invariants: a test process has one service, in a DDS domain that no other process uses; its time advances by `advance`
alone. The page `testing` shows how to use it. Read `_virtual_service.py` first.

- The plug-in `plugin.py` provides the fixture `qsctl_service` and the marker `qsctl_queue`; pytest loads it
  automatically.
- `VirtualService` is the value of the fixture; without pytest it is a context manager.
- `strategies`: Hypothesis strategies for payloads and for schedules of faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.lazy import exports

__all__ = ["SampleInQueue", "VirtualService"]

if TYPE_CHECKING:
    from qsctl.testing._virtual_service import SampleInQueue, VirtualService

__getattr__ = exports(__name__, {"SampleInQueue": "_virtual_service", "VirtualService": "_virtual_service"})
