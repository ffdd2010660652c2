"""The service of a command whose `--timeout` is of a wait and not of an answer.

Decides: that the service has some seconds to answer, however short that wait is.
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
"""Time that a service has to answer a command, however short the wait is."""


@dataclass(frozen=True)
class WaitingService(TargetOptions):
    """Base of such options; a command gives `timeout` its default and its words."""

    @property
    def wait_s(self) -> float:
        """The longest wait."""
        return seconds(self.timeout, "--timeout")

    @contextmanager
    def open(self, target: str = "", *, any_configuration: bool = False) -> Iterator[Administration]:
        """Connect to the service; see `ServiceOptions.open`."""
        answering = self if self.wait_s > LEAST_ANSWER_S else replace(self, timeout=f"{LEAST_ANSWER_S:g}s")
        with super(WaitingService, answering).open(target, any_configuration=any_configuration) as administration:
            yield administration
