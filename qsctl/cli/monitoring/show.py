"""`qsctl show client`, `qsctl show cspf neighbor`: a run, a capture or a broker, in the form of the broker's listings.

The words after the name are those of the broker's own commands [P7500], which operators and scripts know.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.monitoring._show_results import ListedProfile, ShownListing, ShownProfiles
from qsctl.cli.monitoring.listing_source import (
    ListingSource,
    ReplicationOption,
    chosen,
    load_listing,
    load_run,
    no_match,
    only,
)
from qsctl.cli.monitoring.show_engine import show_engine
from qsctl.cli.output.render import note
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.errors import Refused, UsageError

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.profiles.listings.model import Listings
    from qsctl.sim.listings.run_state import RunState

COMMANDS: Final = Commands(
    panel=SIMULATION_PANEL, group="show", help="Show a run, a captured listing or a broker, as the broker lists it."
)

COMMANDS.command(
    "engine",
    examples=(
        "qsctl show engine hospital.recovery  # what waits where, and what failed",
        "qsctl show engine /var/dumps --over 15min  # of a timer: rates, and when each queue is empty",
        "hcidbdump -r -l | qsctl show engine - -o json",
    ),
)(show_engine)

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name; ? matches one character, * any text.", show_default=False),
]
WordsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="WORDS…", help="Words of the broker's command behind the name.", show_default=False),
]

STATS, SLOW, CONNECTIONS = "stats queue", "slow-subscriber", "connections wide"
_CLIENT_WORDS: Final = {
    STATS: STATS,
    "stats queues": STATS,
    SLOW: SLOW,
    CONNECTIONS: CONNECTIONS,
    "connections": CONNECTIONS,
}
_NEIGHBOR_WORDS: Final = frozenset({"stats queues", "stats queue"})
EVENTS_REMEDY: Final = "its log level is {level}: with --level events every figure of single clients is known."


@COMMANDS.command(
    "client",
    examples=(
        "qsctl show client 'desks/*' stats queue  # of the newest run",
        "qsctl show client '*' slow-subscriber --run qsctl-runs/slow-subscriber-1",
        "qsctl show client '*' connections wide -o csv",
        "qsctl show client '*' stats queue --listing captured.txt -o prometheus",
        "qsctl show client '*' slow-subscriber --broker https://broker.example:943",
    ),
)
def show_client(
    name: NameArgument,
    words: WordsArgument = None,
    replication: ReplicationOption = 0,
    *,
    source: ListingSource,
) -> ShownListing:
    """Show clients as the broker lists them: `stats queue`, `slow-subscriber` or `connections wide`.

    A simulated run's clients are those of its scenario, with its counters and events of them when it ended.
    """
    typed = " ".join(words or ())
    kind = _CLIENT_WORDS.get(typed)
    if kind is None:
        raise UsageError(
            f"show client {name} {typed!r} is not a listing",
            remedy=f"Write one of: {', '.join([STATS, SLOW, CONNECTIONS])}.",
        )
    source.check()
    if source.is_captured:
        return _noted(_captured_clients(source, name, kind))
    return _noted(_run_clients(source.run, replication, name, kind))


@COMMANDS.command(
    "client-profile",
    examples=(
        "qsctl show client-profile default detail",
        "qsctl show client-profile '*' message-vpn markets detail --listing captured.txt",
    ),
)
def show_client_profile(
    name: NameArgument,
    words: WordsArgument = None,
    *,
    source: ListingSource,
) -> ShownProfiles:
    """Show client profiles as the broker lists them: `detail`, or `message-vpn VPN detail`.

    Of a run: the profiles of its scenario, as it began. A captured file may have any format of `qsctl client-profile`.
    """
    typed = words or []
    vpn = typed[1] if len(typed) == 3 and typed[0] == "message-vpn" else "*"
    if typed[-1:] != ["detail"] or len(typed) not in {1, 3} or (len(typed) == 3 and typed[0] != "message-vpn"):
        raise UsageError(
            f"show client-profile {name} {' '.join(typed)!r} is not a listing",
            remedy="Write it as in: show client-profile default detail, or: … message-vpn VPN detail.",
        )
    source.check()
    found = _captured_profiles(source) if source.is_captured else _run_profiles(source.run)
    from qsctl.profiles.listings.wildcard import matches

    fitting = [each for each in found if matches(vpn, each.profile.message_vpn)]
    names = {each.name for each in chosen([each.profile for each in fitting], name, "client profile", source.where)}
    return ShownProfiles(tuple(each for each in fitting if each.profile.name in names))


@COMMANDS.command(
    "cspf",
    examples=(
        "qsctl show cspf neighbor '*' stats queues",
        "qsctl show cspf neighbor 1.2.3.4 stats queues --listing captured.txt -o json",
    ),
)
def show_cspf(
    words: Annotated[
        list[str], typer.Argument(metavar="neighbor NAME stats queues", help="Words of the broker's command.")
    ],
    replication: ReplicationOption = 0,
    *,
    source: ListingSource,
) -> ShownListing:
    """Show the queues of links to neighbour brokers: `neighbor NAME stats queues`.

    In a scenario a group with neighbor="true" is a link, and its four clients are the four data connections.
    """
    if len(words) < 3 or words[0] != "neighbor" or " ".join(words[2:]) not in _NEIGHBOR_WORDS:
        raise UsageError(
            f"show cspf {' '.join(words)!r} is not a listing",
            remedy="Write it as in: show cspf neighbor '*' stats queues.",
        )
    name = words[1]
    source.check()
    if source.broker:
        raise Refused(
            "SEMP has no figures of the links to neighbours", remedy="Capture the broker's listing, and give --listing."
        )
    if source.listing is not None:
        found = load_listing(source.listing)
        neighbors = chosen(found.neighbors, name, "neighbor", str(source.listing))
        return _noted(ShownListing(only(found, neighbors=neighbors), found.notes))
    from qsctl.profiles.listings.model import Listings
    from qsctl.sim.listings.broker_listings import neighbor_queues

    state = load_run(source.run, replication)
    links = list(neighbor_queues(state))
    if not links:
        error = no_match((), name, "neighbor", f"the scenario of {state.run.folder}")
        error.remedy = 'Mark the group that stands for its link: <group name="…" count="4" neighbor="true" …/>.'
        raise error
    return ShownListing(Listings(neighbors=tuple(chosen(links, name, "neighbor", str(state.run.folder)))))


def _captured_profiles(source: ListingSource) -> list[ListedProfile]:
    from qsctl.profiles.formats.file import read_profiles

    if source.listing is not None:
        return [ListedProfile(each.profile) for each in read_profiles(source.listing).profiles]
    with source.open() as broker:
        return [ListedProfile(each.profile) for each in broker.profiles().profiles]


def _run_profiles(run: Path | None) -> list[ListedProfile]:
    from qsctl.sim.listings.broker_listings import MESSAGE_VPN
    from qsctl.sim.listings.broker_profile import broker_profile, users_of
    from qsctl.sim.scenario.scenario import Model

    state = load_run(run, 0)
    if state.scenario.model is not Model.SOLACE:
        raise Refused(
            f"{state.run.folder} is a run of model {state.scenario.model}, whose profile has another listing",
            remedy="Its one limit is in the scenario: <profile><queue name=\"egress\" max-depth=\"…\"/>.",
        )  # fmt: skip
    return [
        ListedProfile(broker_profile(profile, MESSAGE_VPN), tuple(users_of(state, profile.name)))
        for profile in state.scenario.profiles
    ]


def _noted(shown: ShownListing) -> ShownListing:
    """Print a listing's notes on standard error, and return the listing."""
    for each in shown.notes:
        note(f"Note: {each}")
    return shown


def _captured_clients(source: ListingSource, name: str, kind: str) -> ShownListing:
    def asked(broker: SempBroker) -> Listings:
        """Query the one listing that is shown, by SEMP v1, since v2 has neither priority queues nor windows."""
        if kind == STATS:
            return broker.client_queues(name)
        return broker.connections(name) if kind == CONNECTIONS else broker.listings("clients")

    found = source.listings(asked)
    where = source.where
    if kind == STATS:
        return ShownListing(only(found, clients=chosen(found.clients, name, "client with queues", where)), found.notes)
    if kind == CONNECTIONS:
        rows = chosen(found.connections, name, "client with connections", where)
        return ShownListing(only(found, connections=rows), found.notes)
    from qsctl.profiles.listings.model import SlowSubscriber
    from qsctl.profiles.listings.wildcard import matches

    slow = [row for row in found.slow_subscribers if matches(name, row.name) and row.slow_subscriber is not False]
    slow += [
        SlowSubscriber(each.name, each.message_vpn, each.client_username, each.client_address, True)
        for each in found.clients
        if each.slow_subscriber and matches(name, each.name)
    ]
    return ShownListing(only(found, slow_subscribers=slow), found.notes, empty=_none_is_slow(name))


def _run_clients(run: Path | None, replication: int, name: str, kind: str) -> ShownListing:
    from qsctl.profiles.listings.model import Listings
    from qsctl.profiles.listings.wildcard import matches
    from qsctl.sim.listings import broker_listings

    state = load_run(run, replication)
    where = str(state.run.folder)
    if kind == STATS:
        clients = chosen(broker_listings.client_queues(state), name, "client", where)
        return ShownListing(Listings(clients=tuple(clients)), _notes(state))
    chosen([client for client in state.clients if not client.group.neighbor], name, "client", where)
    if kind == CONNECTIONS:
        rows = tuple(row for row in broker_listings.connections(state) if matches(name, row.name))
        return ShownListing(Listings(connections=rows), _notes(state), empty="No client that fits is connected.")
    slow = tuple(row for row in broker_listings.slow_subscribers(state) if matches(name, row.name))
    return ShownListing(Listings(slow_subscribers=slow), _notes(state), empty=_none_is_slow(name))


def _none_is_slow(name: str) -> str:
    return f"No client that fits {name!r} is a slow subscriber."


def _notes(state: RunState) -> tuple[str, ...]:
    """Return notes that limit the meaning of a run's figures."""
    info = state.run.info
    notes = []
    if not state.replication.complete:
        notes.append(f"{state.run.folder}: the run was stopped; these are the figures up to there.")
    if info.log_level != "events" and any(
        None in (client.slow, client.slow_percent, client.large_message, client.max_eliding_topics)
        for client in state.clients
    ):
        notes.append(f"{state.run.folder}: {EVENTS_REMEDY.format(level=info.log_level)}")
    return tuple(notes)
