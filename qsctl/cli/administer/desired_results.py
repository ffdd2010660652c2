"""The results of `qsctl plan` and `qsctl apply`: steps, obstacles, and differences that only a restart changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted, plain
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.client.desired.steps import Obstacle, Plan, PlanStep, SettingChange

_SHOWN_MAX: Final = 20
"""Restarts and extras that a table lists; more are only counted."""


@dataclass(frozen=True)
class Planned(Result):
    """A plan, or its outcome; `done` is the number of steps that were carried out, None if it was only planned."""

    service: str
    file: str
    plan: Plan
    begins: bool = False
    """Whether the service does not exist yet, so that the first step is to create it from the file."""
    done: int | None = None

    field_help: ClassVar[Mapping[str, str]] = {
        "kind": "step, obstacle (no command removes the difference), restart (it takes effect when the service is "
        "started with the file) or extra (not in the file, and kept)",
        "action": "of a step: begin service, update queue, create subscriber, create queue, delete queue, "
        "delete subscriber",
        "resource": "the resource identifier of what is changed; of a restart the path of the value",
        "reason": "why",
        "how": "of an obstacle: how the difference can be removed",
        "changes": "values that differ: path, live (what the service has) and wanted (what the file has)",
        "done": "of a step: whether it was carried out; null where a plan was only made",
        "service": "application name of the service",
        "file": "the file",
        "steps": "how many steps there are (as JSON and YAML only)",
        "differences": "the rows (as JSON and YAML only)",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO for a plan with steps, as `qsctl diff` does; else DONE."""
        is_plan = self.done is None
        return ExitStatus.NO if is_plan and (self.begins or not self.plan.is_nothing) else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the service, the file, the number of steps, and the list of all differences."""
        steps = len(self.plan.steps) + self.begins
        return {"service": self.service, "file": self.file, "steps": steps, "differences": self.rows()}

    def rows(self) -> list[Row]:
        """Return a row for each step, obstacle, restart or extra."""
        done = self.done
        begun = None if done is None else True
        rows = [_row("step", action="begin service", reason="there is none", done=begun)] * self.begins
        for at, step in enumerate(self.plan.steps):
            is_done = None if done is None else at < done
            rows.append(
                _row("step", step.resource, step.reason, action=step.action.value, changes=step.changes, done=is_done)
            )
        for each in self.plan.obstacles:
            rows.append(_row("obstacle", each.resource, each.what, how=each.how, changes=each.changes))
        rows += [
            _row("restart", change.path, "takes effect when the service is started with the file", changes=(change,))
            for change in self.plan.restarts
        ]
        return [*rows, *(_row("extra", each, "not in the file") for each in self.plan.extras)]

    def blocks(self) -> Sequence[Block]:
        """Return the steps in order, the obstacles, the changes that need a restart, and the extras that are kept."""
        plan, blocks = self.plan, list[Block]()
        if self.begins:
            blocks.append(TextBlock(f"A service begins with {self.file}: none was found."))
        if plan.steps:
            rows = [_shown(number, step) for number, step in enumerate(plan.steps, 1)]
            columns = [Column("number", "#", "right"), Column("action", "Action"), Column("name", "Name")]
            blocks.append(TableBlock([*columns, Column("why", "Why")], rows))
        blocks += [TextBlock(_in_the_way(each), "bad") for each in plan.obstacles]
        restarts = [str(each) for each in plan.restarts]
        blocks += _few("Takes effect when the service is started with the file:", restarts)
        blocks += _few("Not in the file, and kept (--prune deletes it):", [_name(each) for each in plan.extras])
        blocks.append(TextBlock(self._summary(), "bad" if plan.obstacles else "good"))
        return blocks

    def _summary(self) -> str:
        plan = self.plan
        if plan.obstacles:
            return f"Nothing is done to service {self.service}: {counted(len(plan.obstacles), 'obstacle')}."
        if self.begins:
            return f"Service {self.service} is as {self.file} has it." if self.done is not None else "1 step."
        if not plan.steps:
            return f"Nothing to do: service {self.service} is as {self.file} has it."
        if self.done is not None:
            return f"{counted(self.done, 'step')} done: service {self.service} is as {self.file} has it."
        return f"{counted(len(plan.steps), 'step')} for service {self.service}."


def _row(
    kind: str,
    resource: object = "",
    reason: str = "",
    *,
    action: str = "",
    how: str = "",
    changes: Sequence[SettingChange] = (),
    done: bool | None = None,
) -> Row:
    return {
        "kind": kind,
        "action": action,
        "resource": str(resource),
        "reason": reason,
        "how": how,
        "changes": plain(changes),
        "done": done,
    }


def _shown(number: int, step: PlanStep) -> Row:
    changed = "; ".join(f"{each.path.rpartition('/')[2]} {each.live} -> {each.wanted}" for each in step.changes)
    why = changed if step.reason == "differs" else step.reason
    return {"number": number, "action": step.action.value, "name": _name(step.resource), "why": why}


def _in_the_way(obstacle: Obstacle) -> str:
    lines = [f"{_name(obstacle.resource)}: {obstacle.what}", *(f"  {each}" for each in obstacle.changes)]
    return "\n".join([*lines, f"  {obstacle.how}."] if obstacle.how else lines)


def _few(heading: str, lines: Sequence[str]) -> list[Block]:
    if not lines:
        return []
    more = [f"and {len(lines) - _SHOWN_MAX} more"] if len(lines) > _SHOWN_MAX else []
    return [TextBlock("\n".join([heading, *(f"  {each}" for each in [*lines[:_SHOWN_MAX], *more])]), "faint")]


def _name(resource: object) -> str:
    from qsctl.core.admin.resolve import short_name
    from qsctl.resource import ResourceIdentifier

    assert isinstance(resource, ResourceIdentifier)
    return short_name(resource)
