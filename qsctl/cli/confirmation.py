"""Confirmation of destructive or long commands: a trial with `--dry-run`, and a question unless `--yes` is given.

Decides when the user is asked: only if standard input and standard error are terminals; else the command is carried out
directly. The affected objects are looked up only if they are shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli.caller import program_caller
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.output.results import counted
from qsctl.errors import ExitStatus, QsctlError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.resource import ResourceIdentifier
    from qsctl.summary.sweeps.cost import Cost


class Declined(QsctlError):
    """The user answered the confirmation with no."""

    exit_status = ExitStatus.NO


@dataclass(frozen=True)
class Hit:
    """The objects that a command would affect in one service, as text: `queue P/S/Orders with 12 samples`."""

    service: str
    what: str


@dataclass(frozen=True)
class DestructionOptions(OptionGroup):
    """The options of a destructive command: `--yes` and `--dry-run`."""

    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the question on a terminal.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be affected, and change nothing.")] = False

    def trial(self, find: Callable[[], Sequence[Hit]]) -> Sequence[Hit] | None:
        """Return the affected objects with `--dry-run`; else ask the user on a terminal, and return None to continue.

        Raises:
            Declined: the user answered no.
        """
        if self.dry_run:
            return find()
        if not self.yes and program_caller() is None and sys.stdin.isatty() and sys.stderr.isatty():
            for hit in find():
                typer.echo(f"{hit.service}: {hit.what}" if hit.service else hit.what, err=True)
            if not typer.confirm("Go on?", err=True):
                raise Declined("nothing was done", remedy="With --yes nothing is asked.")
        return None


def agree_to_cost(cost: Cost, *, yes: bool = False) -> None:
    """Show the cost of a long computation on a terminal, and ask if it exceeds a minute, unless `yes`.

    Raises:
        Declined: the user answered no.
    """
    from qsctl.summary.sweeps.cost import ASKED_ABOVE_S

    if program_caller() is not None or not sys.stderr.isatty():
        return
    typer.echo(f"{str(cost)[0].upper()}{str(cost)[1:]}.", err=True)
    if yes or cost.seconds <= ASKED_ABOVE_S or not sys.stdin.isatty():
        return
    if not typer.confirm("Go on?", default=True, err=True):
        raise Declined(
            f"{cost} were declined",
            remedy="Narrow the range, shorten the scenario, or ask for less. --yes skips the question.",
        )


def queues_hit(
    administration: Administration, does: str, is_hit: Callable[[str], bool], queue: ResourceIdentifier | None = None
) -> list[Hit]:
    """Return the queues that a command would affect, with their numbers of samples.

    Args:
        administration: the services.
        does: the effect on a queue, in words.
        is_hit: returns whether the queue of a full name is affected.
        queue: the only queue to look up; None for all.
    """
    found = administration.statuses(queue) if queue is not None else administration.statuses()
    return [
        Hit(
            service,
            f"queue {status.queue_name} with {counted(status.current_message_count, 'sample')}"
            f"{_with_consumers(status.current_sent_message_count)} {does}",
        )
        for service, status in found
        if is_hit(status.queue_name)
    ]


def _with_consumers(count: int) -> str:
    return f", {count} of them with consumers," if count else ""
