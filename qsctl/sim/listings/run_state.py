"""The state of each client at the end of one replication, from a run folder: its counters, and its state by its events.

Counters exist at every level. Slowness, one-shot events and reconnections of single clients are events: below level
`events` a figure is None unless the run's totals decide it (an event that never occurred did not occur to this client,
and the event of a single client was the first's).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from qsctl.errors import NotFound, Refused
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.reader import RecordedRun, open_run
from qsctl.eventlog.run_folder import DEFAULT_PARENT, RUN_FILE, SCENARIO_FILE, Happening, ReplicationInfo
from qsctl.sim.egress.layout.client_names import ClientNames
from qsctl.sim.model import EVENT_NAMES, Event
from qsctl.sim.scenario.changes import QueueChange, read_changes
from qsctl.sim.scenario.scenario import QUEUE_ORDER, TIBCO_QUEUE, ClientGroup, Model, Profile, Queue, Scenario
from qsctl.sim.scenario.xml import read_scenario

_SHARED_READER_QUEUES: Final = "shared reader queues, whose consumers have no egress queues"
_WITHOUT_EGRESS_QUEUES: Final[Mapping[str, str]] = {
    Model.SHARED_READER_QUEUE: _SHARED_READER_QUEUES,
    Model.WORLD: _SHARED_READER_QUEUES,
    Model.QUEUE: "a broker's queue, whose consumers have no egress queues",
    Model.INTEGRATION: "an integration engine, which has no clients with egress queues",
}
_NAMES: Final = {event: EVENT_NAMES[event] for event in Event}
_FOLDED: Final[Mapping[str, Callable[[int, int], Mapping[str, Any]]]] = {
    _NAMES[Event.SLOW_SUBSCRIBER]: lambda _at_ns, _value: {"slow": True},
    _NAMES[Event.SLOW_SUBSCRIBER_CLEARED]: lambda _at_ns, _value: {"slow": False},
    _NAMES[Event.SLOW_PERCENT]: lambda _at_ns, value: {"slow_percent": value / 100},
    _NAMES[Event.LARGE_MESSAGE]: lambda _at_ns, _value: {"large_message": True},
    _NAMES[Event.MAX_ELIDING_TOPICS]: lambda _at_ns, _value: {"max_eliding_topics": True},
    _NAMES[Event.RETRANSMISSIONS]: lambda _at_ns, value: {"retransmissions": value},
    _NAMES[Event.TIME_OUTS]: lambda _at_ns, value: {"time_outs": value},
    _NAMES[Event.CONNECTED]: lambda at_ns, _value: {"is_connected": True, "connected_at_ns": at_ns},
    _NAMES[Event.DISCONNECTED]: lambda _at_ns, _value: {"is_connected": False, "connected_at_ns": None},
    _NAMES[Event.DISCONNECTED_SLOW]: lambda _at_ns, _value: {"is_connected": False, "connected_at_ns": None},
}
"""State of a client after an event at its time with its value; all other events change nothing that is shown."""


@dataclass(slots=True)
class ClientState:
    """The state of one client at the end of the replication; None: the run's log does not contain the figure."""

    number: int
    name: str
    group: ClientGroup
    profile: Profile
    counters: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The rows of `eventlog.schema.COUNTERS` by queue, for queues that carried traffic."""
    max_depths: dict[str, int] = field(default_factory=dict)
    """The maximum depth of each queue, in work units, after the scenario's timed changes."""
    slow: bool | None = False
    slow_percent: float | None = 0.0
    large_message: bool | None = False
    max_eliding_topics: bool | None = False
    retransmissions: int | None = 0
    time_outs: int | None = 0
    is_connected: bool | None = True
    connected_at_ns: int | None = 0


@dataclass(frozen=True, slots=True)
class RunState:
    """A replication of a run, and the scenario that it was simulated from."""

    run: RecordedRun
    scenario: Scenario
    replication: ReplicationInfo
    clients: tuple[ClientState, ...]


def newest_run(parent: Path = DEFAULT_PARENT) -> Path:
    """Return the run folder in `parent` that was written last.

    Raises:
        NotFound: `parent` contains no run folder.
    """
    found = []
    for file in parent.glob(f"*/{RUN_FILE}"):
        try:
            found.append((file.stat().st_mtime_ns, str(file.parent)))
        except OSError:  # deleted in between
            continue
    if not found:
        raise NotFound(f"there is no run in {parent}", remedy="Make one with `qsctl simulate`, or name one with --run.")
    return Path(max(found)[1])


def read_run_state(folder: Path, replication: int = 0) -> RunState:
    """Read the state of a run's clients at the end of one replication.

    Args:
        folder: the folder of a run of a broker's egress queues.
        replication: its number, from 0.

    Raises:
        NotFound: it is not a run folder, or has no such replication.
        Damaged: a file of it is missing or was changed.
        Refused: the run is of shared reader queues or of an integration engine, which have no egress queues.
        InvalidFile: its scenario cannot be read again, as when a trace file went away.
    """
    run = open_run(folder)
    if what := _WITHOUT_EGRESS_QUEUES.get(run.info.model):
        raise Refused(f"{folder} is a run of {what}", remedy=f"Look at it with `qsctl summarize {folder}`.")
    info = next((each for each in run.info.done if each.replication == replication), None)
    if info is None:
        had = ", ".join(str(each.replication) for each in run.info.done) or "none that ended"
        raise NotFound(f"{folder} has no replication {replication}", remedy=f"It has {had}.")
    checked_text(folder, run.info, SCENARIO_FILE)
    scenario = read_scenario(folder / SCENARIO_FILE)
    clients = _clients(scenario)
    _add_counters(run, replication, clients)
    if run.info.log_level == "events":
        _add_events(run, replication, clients)
    else:
        for client in clients:
            _conclude(client, info.happenings, scenario)
    return RunState(run, scenario, info, tuple(clients))


def queue_names(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of each client's queues, in the order of the broker's listings."""
    return (TIBCO_QUEUE,) if scenario.model is Model.TIBCO else tuple(map(str, QUEUE_ORDER))


def _clients(scenario: Scenario) -> list[ClientState]:
    profiles = {profile.name: profile for profile in scenario.profiles}
    groups = [group for group in scenario.groups for _ in range(group.count)]
    depths = {profile.name: _depths(scenario, profile) for profile in scenario.profiles}
    return [
        ClientState(number, name, group, profiles[group.profile], max_depths=dict(depths[group.profile]))
        for number, (name, group) in enumerate(zip(ClientNames(scenario)[: len(groups)], groups, strict=True))
    ]


def _depths(scenario: Scenario, profile: Profile) -> dict[str, int]:
    """Return the profile's maximum depths by queue at the end of the run, after timed changes."""
    tibco = scenario.model is Model.TIBCO
    depths = {
        TIBCO_QUEUE if tibco else str(queue): limits.max_depth_work_units
        for queue, limits in profile.queues.items()
        if not tibco or queue is Queue.D_1
    }
    changes, _ = read_changes(scenario)
    for change in sorted(changes, key=lambda each: each.at_ns):
        if isinstance(change, QueueChange) and change.profile == profile.name and change.limit == "max_depth":
            depths[TIBCO_QUEUE if tibco else str(change.queue)] = change.value
    return depths


def _add_counters(run: RecordedRun, replication: int, clients: list[ClientState]) -> None:
    table = run.counters()
    table = table.drop_columns(["histogram_bucket", "histogram_count"])
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            # Behind the clients are the durable queues, which are not clients.
            if row["replication"] == replication and row["client_id"] < len(clients):
                clients[row["client_id"]].counters[row["queue"]] = row


def _add_events(run: RecordedRun, replication: int, clients: list[ClientState]) -> None:
    for batch in run.events():
        columns = [batch.column(name).to_pylist() for name in ("event", "client_id", "at_ns", "value", "replication")]
        for event, client, at_ns, value, number in zip(*columns, strict=True):
            if number == replication and 0 <= client < len(clients) and event in _FOLDED:
                for field, now in _FOLDED[event](at_ns, value).items():
                    setattr(clients[client], field, now)


def _total(
    by_event: Mapping[str, Happening], event: Event, happened: Callable[[Event], bool | None]
) -> int | None:  # fmt: skip
    """Return a client's count of an event, or None where the run's total may include those of other clients."""
    total = by_event.get(_NAMES[event])
    if total is None or happened(event) is False:
        return 0
    return total.count if total.clients == 1 else None


def _conclude(client: ClientState, happenings: Iterable[Happening], scenario: Scenario) -> None:
    """Set the figures of a client that the run's event summary decides without the rows of single events."""
    by_event = {each.event: each for each in happenings}

    def happened(event: Event) -> bool | None:
        found = by_event.get(_NAMES[event])
        if found is None:
            return False
        if found.first_client == client.name:
            return True
        return False if found.clients == 1 else None

    client.large_message = happened(Event.LARGE_MESSAGE)
    client.max_eliding_topics = happened(Event.MAX_ELIDING_TOPICS)
    percent = by_event.get(_NAMES[Event.SLOW_PERCENT])
    if percent is not None and happened(Event.SLOW_PERCENT) is not False:
        client.slow_percent = percent.peak / 100 if percent.clients == 1 else None
        if percent.peak / 100 >= scenario.broker.slow_threshold_percent:
            client.slow = True if percent.clients == 1 else None
    client.retransmissions = _total(by_event, Event.RETRANSMISSIONS, happened)
    client.time_outs = _total(by_event, Event.TIME_OUTS, happened)
    if any(happened(event) is not False for event in (Event.DISCONNECTED, Event.DISCONNECTED_SLOW)):
        client.is_connected = client.connected_at_ns = None
