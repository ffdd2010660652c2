"""Options of a service that a program holds open, for command functions that would otherwise open it themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qsctl.cli.monitoring.wait import WaitedService
from qsctl.cli.service_options import TargetOptions

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

Opener = Callable[[str], AbstractContextManager["Administration"]]
"""Opens the administration of the services whose names match a target, for one command."""


def _unopened(_target: str) -> AbstractContextManager[Administration]:
    raise AssertionError("a held service has an opener")


@dataclass(frozen=True)
class HeldService(TargetOptions):
    """Options of a service that is already open."""

    opener: Opener = _unopened

    @property
    def begins_now(self) -> bool:
        """Return False: the service exists already."""
        return False

    @contextmanager
    def open(self, target: str = "", *, any_configuration: bool = False) -> Iterator[Administration]:
        """Yield the administration of the open service, which stays open afterwards."""
        del any_configuration  # the service is open with its own configuration
        with self.opener(target or self.target) as administration:
            yield administration


@dataclass(frozen=True)
class HeldWaitedService(WaitedService):
    """Options of an open service for `qsctl wait`, during which other threads may use the service between two polls."""

    opener: Opener = _unopened

    @property
    def leaves_between_looks(self) -> bool:
        """Return True, so that each poll releases the service, wherever it is."""
        return True

    @contextmanager
    def open(self, target: str = "", *, any_configuration: bool = False) -> Iterator[Administration]:
        """Yield the administration of the open service, which stays open afterwards."""
        del any_configuration
        with self.opener(target or self.target) as administration:
            yield administration
