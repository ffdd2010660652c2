"""`qsctl wait`: wait until a queue or an engine exists and its figures meet conditions."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._waiting_service import WaitingService
from qsctl.cli.command import Commands
from qsctl.cli.location import seconds
from qsctl.cli.output.declared import DeclaredResult, row_of
from qsctl.cli.output.results import Block, Plain, Row, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.errors import NoAnswer, NotFound, UsageError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

_CONDITION: Final = re.compile(r"\s*([a-z_]+)\s*(<=|>=|!=|=|<|>)\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*")
_EMPTY: Final = ("current_message_count=0", "current_waiting_message_count=0")
_RELATIONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """A condition on a figure of a queue's status."""

    text: str
    field: str
    relation: str
    number: float

    def holds(self, row: Mapping[str, Plain]) -> bool:
        """Return whether a queue's status meets the condition.

        Raises:
            UsageError: the status has no such number.
        """
        value = row.get(self.field)
        if not isinstance(value, int | float) or isinstance(value, bool):
            known = ", ".join(name for name in row if name.startswith("current") or name in ENGINE_CONDITIONS)
            other = (
                "" if known.startswith(ENGINE_CONDITIONS) else ", or another one of `qsctl get status --format-help`"
            )
            raise UsageError(
                f"--until {self.text!r}: the status has no number {self.field!r}", remedy=f"Use {known}{other}."
            )
        return _RELATIONS[self.relation](value, self.number)


@dataclass(frozen=True)
class WaitedService(WaitingService):
    """The options of the queue's service; `--timeout` limits the whole wait."""

    timeout: Annotated[
        str,
        typer.Option(help="Longest wait, a duration such as 30s, or infinite.", rich_help_panel="Service"),
    ] = "30s"


@dataclass(frozen=True)
class Waited(DeclaredResult):
    """The conditions that were met, and the duration of the wait."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE"]
    conditions: Annotated[tuple[str, ...], "conditions that were waited for"]
    waited_s: Annotated[float, "how long that took, in seconds"]
    values: Annotated[dict[str, float], "the figures of the conditions, by their names"]

    def rows(self) -> list[Row]:
        """Return one row, with the conditions as one text."""
        return [{**row_of(Waited, self), "conditions": " and ".join(self.conditions)}]

    def blocks(self) -> list[Block]:
        """Return a sentence."""
        found = ", ".join(f"{name} is {value:g}" for name, value in self.values.items()) or "it is there"
        return [TextBlock(f"{self.queue_name}: {found}, after {self.waited_s:.1f} s", "good")]


ENGINE_CONDITIONS: Final = ("recovery_messages", "error_messages", "queue_messages", "oldest_age_s")
"""Figures of an engine for conditions; the last two are of the queues of a thread, or of all."""


@COMMANDS.command(
    "wait",
    examples=(
        "qsctl wait Orders --until 'current_message_count=0' --timeout 30s",
        "qsctl wait Orders --empty --timeout 5m  # until consumers have acknowledged all of it",
        "qsctl wait Orders --timeout 1m  # until the queue exists",
        "qsctl wait lab_out --engine hospital.recovery --until 'queue_messages=0' --timeout 1h  # the backlog is gone",
        "qsctl wait Orders --until 'consumer_count>=2' --until 'current_message_count<100' --service dds:57",
    ),
)
def wait(
    queue: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUEUE]",
            help="Q, SUBSCRIBER/Q, PARTICIPANT/SUBSCRIBER/Q, TOPIC@SUBSCRIBER, or a resource identifier; with --engine "
            "a thread, left out: all of them.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=N",
            help="Condition on a number of the queue's status, with =, !=, <, <=, > or >=; may be repeated, and all "
            "have to hold.",
            show_default="the queue is there",
        ),
    ] = None,
    empty: Annotated[
        bool,
        typer.Option("--empty", help="Wait until the queue is empty, and no sample waits outside it."),
    ] = False,
    interval: Annotated[str, typer.Option(help="Time between two readings, a duration such as 200ms.")] = "500ms",
    engine: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SOURCE",
            help="Recovery database of an engine in place of a service, or listings: files, or the folder that a timer "
            f"writes them to; conditions are on {', '.join(ENGINE_CONDITIONS)}.",
        ),
    ] = None,
    *,
    service: WaitedService,
) -> Waited:
    """Wait until a queue is there and figures of its status are as they should be.

    Exits with 8 when that is not so in time. A service or a queue that is not there yet is waited for. Where several
    services host the queue, the conditions have to hold for each. Each look starts the `change` counters from zero.
    """
    begun = time.monotonic()
    pause_s = max(0.01, seconds(interval, "--interval"))
    wait_s = service.wait_s
    if engine:
        conditions = tuple(_condition(each) for each in (*(("queue_messages=0",) if empty else ()), *(until or ())))
        return _wait_for_engine(engine, queue, conditions, begun, pause_s, wait_s)
    if queue is None:
        raise UsageError("no queue is named", remedy="As in: qsctl wait Orders --empty; of an engine: --engine FILE.")
    conditions = tuple(_condition(each) for each in (*(_EMPTY if empty else ()), *(until or ())))
    seen = "no service answered"
    while True:
        try:
            with service.open() as administration:
                while True:
                    name, values, seen = _look(administration, queue, conditions)
                    waited_s = time.monotonic() - begun
                    if name and not seen:
                        return Waited(name, tuple(each.text for each in conditions), round(waited_s, 3), values)
                    if waited_s >= wait_s or service.leaves_between_looks:
                        break  # others may use the service in between
                    time.sleep(min(pause_s, max(0.0, wait_s - waited_s)))
        except NoAnswer as error:
            seen = error.message
        left_s = wait_s - (time.monotonic() - begun)
        if left_s <= 0:
            raise NoAnswer(f"after {wait_s:g} s: {seen}", remedy="Give it more time with --timeout.")
        time.sleep(min(pause_s, left_s))


def _wait_for_engine(
    sources: list[Path],
    thread: str | None,
    conditions: tuple[StatusCondition, ...],
    begun: float,
    pause_s: float,
    wait_s: float,
) -> Waited:
    """Wait until an engine's figures meet the conditions; a file that does not exist yet is waited for."""
    name = thread or str(sources[0])
    while True:
        values: dict[str, float] = {}
        try:
            row = _engine_row(sources, thread)
            unmet = [each for each in conditions if not each.holds(row)]
            values = {each.field: row[each.field] for each in conditions}
            seen = "; ".join(f"{each.field} of {name} is {row[each.field]:g}, wanted is {each.text}" for each in unmet)
        except NotFound as error:
            seen = error.message
        waited_s = time.monotonic() - begun
        if not seen:
            return Waited(name, tuple(each.text for each in conditions), round(waited_s, 3), values)
        if waited_s >= wait_s:
            raise NoAnswer(f"after {wait_s:g} s: {seen}", remedy="Give it more time with --timeout.")
        time.sleep(min(pause_s, max(0.0, wait_s - waited_s)))


def _engine_row(sources: list[Path], thread: str | None) -> dict[str, float]:
    from qsctl.cli.engine.looks import LookOptions
    from qsctl.profiles.listings.wildcard import matches

    history = LookOptions().look(sources, needs_history=False).history
    queues = [each for each in history.trends() if matches(thread or "*", each.key.thread)]
    values = (
        history.now.recovery_messages,
        history.now.error_messages,
        sum(each.messages for each in queues),
        max((each.oldest_age_ns or 0 for each in queues), default=0) / 1e9,
    )
    return dict(zip(ENGINE_CONDITIONS, values, strict=True))


def _look(
    administration: Administration, queue: str, conditions: tuple[StatusCondition, ...]
) -> tuple[str, dict[str, float], str]:
    """Return the queue's full name, its figures, and a description of the unmet conditions (empty if all are met)."""
    from qsctl.cli.administer.get_results import Statuses
    from qsctl.core.admin.resolve import short_name

    try:
        resource = administration.queue_named(queue)
        rows = Statuses(tuple(administration.statuses(resource))).rows()
    except NotFound as error:
        return "", {}, error.message
    values: dict[str, float] = {}
    missing: list[str] = []
    for row in rows:
        for each in conditions:
            holds = each.holds(row)
            value = row[each.field]
            assert isinstance(value, int | float)
            if each.field not in values or not holds:
                values[each.field] = value
            if not holds:
                missing.append(f"{each.field} of queue {short_name(resource)} is {value:g}, wanted is {each.text}")
    return short_name(resource), values, "; ".join(dict.fromkeys(missing))


def _condition(text: str) -> StatusCondition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--until {text!r} is not a condition",
            remedy="Write it as current_message_count=0, with =, !=, <, <=, > or >=.",
        )
    return StatusCondition(text.strip(), found[1], found[2], float(found[3]))
