"""The parts of a plan: steps, obstacles, and differences that only a restart changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.resource import ResourceIdentifier


class Action(StrEnum):
    """The action of a step; each is one command."""

    UPDATE_QUEUE = "update queue"
    CREATE_SUBSCRIBER = "create subscriber"
    CREATE_QUEUE = "create queue"
    DELETE_QUEUE = "delete queue"
    DELETE_SUBSCRIBER = "delete subscriber"


DESTROYS = frozenset({Action.DELETE_QUEUE, Action.DELETE_SUBSCRIBER})
"""The actions after which something is gone."""

Settings: TypeAlias = SharedReaderQueueSettings | SharedSubscriberSettings


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs: its path in canonical XML, the service's value and the file's; None: absent."""

    path: str
    live: str | None
    wanted: str | None

    def __str__(self) -> str:
        return f"{self.path} {_shown(self.live)} -> {_shown(self.wanted)}"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One command.

    `resource` is the resource to change, create or delete, `settings` its new settings; None for a deletion.
    """

    action: Action
    resource: ResourceIdentifier
    reason: str
    settings: Settings | None = None
    changes: tuple[SettingChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A difference that no command can remove at present, and the remedy."""

    resource: ResourceIdentifier
    what: str
    how: str
    changes: tuple[SettingChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that makes a service equal to a file: `steps` in a safe order, each possible after those before it.

    With `obstacles` the steps do not make the service equal to the file. `restarts` are differences that take effect
    when the service is restarted with the file, `extras` the queues that are kept because --prune was not given.
    """

    steps: Sequence[PlanStep] = ()
    obstacles: Sequence[Obstacle] = ()
    restarts: Sequence[SettingChange] = ()
    extras: Sequence[ResourceIdentifier] = ()

    @property
    def is_nothing(self) -> bool:
        """Return whether the plan has neither steps nor obstacles."""
        return not (self.steps or self.obstacles)


def _shown(value: str | None) -> str:
    return "(none)" if value is None else value or '""'
