"""Support for tests of applications that use queues: a service in the process of the tests, under virtual time.

What comes in: markers of pytest, and what the application under test does through `qsctl.client`. What goes out: what
the queues hold. What always holds: one service a process of tests, in a domain that no other process has; its time
passes by `advance` alone. The page `testing` shows how to use it. Read `virtual_service.py` first.

- The plug-in `plugin.py` gives the fixture `qsctl_service` and the marker `qsctl_queue`; pytest finds it by itself.
- `VirtualService`: the fixture's object; also without pytest, as a context manager.
- `strategies`: hypothesis' strategies of payloads and of schedules of faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.lazy import exports

__all__ = ["SampleInQueue", "VirtualService"]

if TYPE_CHECKING:
    from qsctl.testing.virtual_service import SampleInQueue, VirtualService

__getattr__ = exports(__name__, {"SampleInQueue": "virtual_service", "VirtualService": "virtual_service"})
