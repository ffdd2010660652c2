"""A run's discards by cause, with the queue that lost most by each, and the command that checks a remedy.

A command changes one setting of the run's scenario: it simulates the scenario without the cause or, for congestion,
searches for the smallest depth that loses no message.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qsctl.errors import Refused
from qsctl.eventlog.explained import merged_happenings
from qsctl.eventlog.outcomes import LOSSES, column_of
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import SCENARIO_FILE
from qsctl.profiles.listings.discards import BY_KEY, BY_OUTCOME, CAUSES, DiscardCause
from qsctl.sim.model import EVENT_NAMES, Event
from qsctl.sim.scenario.scenario import Model, Scenario
from qsctl.sim.scenario.xml import read_scenario

LARGEST_MESSAGE: Final = "200 MB"
"""Above every message that the simulator accepts."""


_QUOTAS: Final = ("max-messages", "max-spool-usage", "low-priority-limit")
"""The limits by which an endpoint refuses messages."""
_OF_DURABLE_QUEUES: Final = {"expired": BY_KEY["ttl_expired"], "dead": BY_KEY["redelivery_exceeded"]}
"""Counters of durable queues in a broker's message spool: `show message-spool stats`."""
_MOVED: Final = {
    EVENT_NAMES[Event.EXPIRED_TO_DMQ]: BY_KEY["ttl_expired_to_dmq"],
    EVENT_NAMES[Event.REDELIVERED_TO_DMQ]: BY_KEY["redelivery_exceeded_to_dmq"],
    EVENT_NAMES[Event.REJECTED_TO_DMQ]: BY_KEY["rejected_to_dmq"],
}
"""By event: what was not lost, but moved to a dead message queue."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One cause of loss: the number of messages, the queue that lost most, and the command that checks a remedy."""

    of: str
    cause: DiscardCause
    messages: int
    most: str = ""
    first_ns: int | None = None
    command: str = ""


@dataclass(slots=True)
class _Place:
    """The number of messages that one queue of one client lost by one cause."""

    client: str
    client_id: int
    queue: str
    messages: int


def explain_run(folder: Path) -> list[Explained]:
    """Return the causes by which a run's messages were discarded or elided, summed over replications, most first.

    Raises:
        NotFound: it is not a run folder.
        Damaged: a file of it is missing or was changed.
        InvalidFile: its scenario cannot be read again.
        Refused: the run is of an integration engine, whose queues discard nothing.
    """
    run = open_run(folder)
    if run.info.model == Model.INTEGRATION:
        raise Refused(
            f"{folder} is a run of an integration engine, whose queues have no limits and discard nothing",
            remedy=f"Where messages wait, and which results failed: `qsctl summarize {folder}`.",
        )
    scenario = read_scenario(folder / SCENARIO_FILE)
    rows = run.counters().drop_columns(["histogram_bucket", "histogram_count"]).to_pylist()
    happened = {each.event for done in run.info.done for each in done.happenings}
    columns = {**{column_of(outcome): outcome.value for outcome in LOSSES}, "elided_messages": "elided"}
    found = []
    for column, outcome in columns.items():
        cause = (_OF_DURABLE_QUEUES if scenario.durable_queues else BY_OUTCOME).get(outcome, BY_OUTCOME[outcome])
        total = sum(row[column] for row in rows)
        if not total:
            continue
        worst = _worst(rows, column)
        command = _command(outcome, folder, scenario, worst, happened)
        most = f"{worst.client} {worst.queue}: {worst.messages:,}"
        found.append(Explained(f"run {folder}", cause, total, most, command=command))
    found += [
        Explained(f"run {folder}", _MOVED[each.event], each.count, f"{each.first_client} G-1")
        for each in merged_happenings(run.info.done)
        if each.event in _MOVED
    ]
    order = {cause.key: number for number, cause in enumerate(CAUSES)}
    return sorted(found, key=lambda each: (-each.messages, order[each.cause.key]))


def _worst(rows: Iterable[Mapping[str, Any]], column: str) -> _Place:
    counted: Counter[tuple[int, str, str]] = Counter()
    for row in rows:
        counted[row["client_id"], row["client"], row["queue"]] += row[column]
    (number, client, queue), messages = max(counted.items(), key=lambda each: (each[1], -each[0][0]))
    return _Place(client, number, queue, messages)


def _command(outcome: str, folder: Path, scenario: Scenario, worst: _Place, happened: set[str]) -> str:
    """Return the command that simulates the scenario without this cause; empty where no setting removes the cause."""
    if scenario.model is Model.QUEUE:
        return ""
    file = str(folder / SCENARIO_FILE)
    if outcome == "discarded":
        if scenario.model in {Model.SHARED_READER_QUEUE, Model.WORLD}:
            return ""
        return shlex.join(
            ["qsctl", "size", file, "--target", f"discards({worst.queue})=0", "--vary", f"max-depth({worst.queue})"]
        )
    changes = _changes(outcome, scenario, worst, happened)
    sets = [word for change in changes for word in ("--set", change)]
    return shlex.join(["qsctl", "simulate", file, *sets]) if sets else ""


def _changes(outcome: str, scenario: Scenario, worst: _Place, happened: set[str]) -> list[str]:
    group = _group_of(scenario, worst.client_id)
    match outcome:
        case "not_connected" | "disconnected":
            return _staying_connected(scenario, group, happened)
        case "spool_refused" if _is_durable_queue(scenario, worst.client):
            return [f"durable-queue[{worst.client}]/{limit}=unlimited" for limit in _QUOTAS]
        case "spool_refused":
            return [f"endpoint[{group}]/{limit}=unlimited" for limit in _QUOTAS]
        case "ingress_refused":
            return ["broker/ingress-rate=0", "broker/ingress-buffer=0"]
        case "too_big":
            return [f"broker/max-message={LARGEST_MESSAGE}"]
        case "elided":
            profile = next(each.profile for each in scenario.groups if each.name == group)
            return [f"profile[{profile}]/eliding/enabled=false"]
        case "expired" if _is_durable_queue(scenario, worst.client):
            return [f"durable-queue[{worst.client}]/respect-ttl=false",
                    f"durable-queue[{worst.client}]/max-ttl=infinite"]  # fmt: skip
        case "dead" if _is_durable_queue(scenario, worst.client):
            return [f"durable-queue[{worst.client}]/max-redelivery=unlimited"]
        case "rejected":
            return [f"durable-queue[{worst.client}]/flow[*]/rejects=0"]
        case "expired":
            return ["producer[*]/lifespan=infinite"]
        case "dead":
            return ["consumer[*]/rejects=0", "consumer[*]/silent=0"]
        case _:
            return []


def _is_durable_queue(scenario: Scenario, name: str) -> bool:
    return any(queue.name == name for queue in scenario.durable_queues)


def _staying_connected(scenario: Scenario, group: str, happened: set[str]) -> list[str]:
    """Return the changes (`--set`) by which clients are not disconnected as slow, and absences are short."""
    changes = []
    if EVENT_NAMES[Event.DISCONNECTED_SLOW] in happened:
        changes.append("broker/slow-disconnect=false")
    if any(each.absences for each in scenario.groups if each.name == group):
        changes.append(f"group[{group}]/absence[*]/duration=1ms")
    for number, change in enumerate(scenario.changes, 1):
        if change.path == f"client[{group}]/absence":
            changes.append(f"change[{number}]/value=1ms")
    return changes


def _group_of(scenario: Scenario, client_id: int) -> str:
    end = 0
    for group in scenario.groups:
        end += group.count
        if client_id < end:
            return group.name
    return ""
