"""The options of a service for commands whose `--timeout` limits a wait and not a single answer.

Decides that the service has some seconds to answer, however short that wait is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from qsctl.cli.location import seconds
from qsctl.cli.service_options import TargetOptions

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

LEAST_ANSWER_S: Final = 10.0
"""Least time that a service has to answer a command, in seconds."""


@dataclass(frozen=True)
class WaitingService(TargetOptions):
    """Base class of such groups; a subclass gives `timeout` its default and its help."""

    @property
    def wait_s(self) -> float:
        """Return the longest wait in seconds."""
        return seconds(self.timeout, "--timeout")

    @contextmanager
    def open(self, target: str = "", *, any_configuration: bool = False) -> Iterator[Administration]:
        """Connect to the service; raises as `ServiceOptions.open`."""
        answering = self if self.wait_s > LEAST_ANSWER_S else replace(self, timeout=f"{LEAST_ANSWER_S:g}s")
        with super(WaitingService, answering).open(target, any_configuration=any_configuration) as administration:
            yield administration
