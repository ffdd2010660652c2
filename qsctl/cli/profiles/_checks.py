"""`qsctl client-profile lint|diff|size`: doubtful settings of a profile, differences of two, and the sizing of one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._output_files import written
from qsctl.cli.broker_options import BrokerAddress
from qsctl.cli.command import Commands
from qsctl.cli.options import assignments_of
from qsctl.cli.profiles._results import LintedProfile, ProfileDifference, SizedProfile
from qsctl.cli.profiles.options import (
    FileArgument,
    FileOrBrokerArgument,
    ForceOption,
    NameOption,
    ProfileChoice,
    VpnOption,
)
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qsctl.instant import Nanoseconds
    from qsctl.profiles.client_profile import Queue

COMMANDS: Final = Commands()

FlowsOption = Annotated[int, typer.Option(min=0, max=200_000, help="Number of consumer flows of one client.")]
WindowOption = Annotated[
    int,
    typer.Option(min=1, max=65_535, help="Window of one flow: messages on their way to the client's library."),
]
RoundTripOption = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Round trip from entry into G-1 to the client library's acknowledgment, such as 100ms; 0: unknown.",
    ),
]
RateOption = Annotated[
    str, typer.Option(metavar="RATE", help="Bit rate wanted for one client, as in 1 Gbit/s; 0: not known.")
]
LossOption = Annotated[
    float,
    typer.Option(
        min=0.0, max=0.999,
        help="Probability, between 0 and 1, that the network loses a TCP segment; it needs a round trip. 0: not known.",
    ),
]  # fmt: skip
UnacknowledgedOption = Annotated[
    int,
    typer.Option(
        "--unacknowledged-limit", min=1, max=1_000_000,
        help="Messages of one flow that the application may leave unacknowledged, a setting of the endpoint.",
    ),
]  # fmt: skip
AcknowledgeOption = Annotated[
    str,
    typer.Option(
        "--acknowledge-after", metavar="TIME",
        help="Time from a delivery to the application's acknowledgment, such as 1s, or infinite; 0: unknown.",
    ),
]  # fmt: skip
MessageSizeOption = Annotated[int, typer.Option(min=1, max=2**31 - 1, help="Length of a message, in bytes.")]


@COMMANDS.command(
    "lint",
    examples=(
        "qsctl client-profile lint profile.json --flows 10 --window 255 --message-size 20480",
        "qsctl client-profile lint web.tf --web --topics 80",
        "qsctl client-profile lint profile.json --round-trip 100ms --rate '1 Gbit/s'",
        "qsctl client-profile lint new.json --queued D-1=1500  # before the depth is lowered",
        "qsctl client-profile lint --broker https://broker.example:943 --name web",
    ),
)
def lint(
    file: FileOrBrokerArgument = None,
    *,
    which: ProfileChoice,
    broker: BrokerAddress,
    flows: FlowsOption = 0,
    window: WindowOption = 255,
    message_size: MessageSizeOption = 1024,
    topics: Annotated[
        int, typer.Option(min=0, help="Number of unique topics that one client receives; 0: as many as are elided.")
    ] = 0,
    web: Annotated[
        bool, typer.Option("--web", help="Compute for web messaging clients instead of ordinary ones.")
    ] = False,
    queued: Annotated[
        list[str] | None,
        typer.Option(metavar="QUEUE=N", help="Work units in a queue now, as in D-1=1500; may be repeated."),
    ] = None,
    round_trip: RoundTripOption = "0",
    rate: RateOption = "0",
    unacknowledged_limit: UnacknowledgedOption = 10_000,
    acknowledge_after: AcknowledgeOption = "0",
    loss: LossOption = 0.0,
) -> LintedProfile:
    """Explain settings of a client profile that look unintended: rule, numbers, lever. Exits with 1 on a warning."""
    from qsctl.instant import parse_duration
    from qsctl.profiles.lint import Circumstances
    from qsctl.profiles.lint import lint as find

    opened, read = which.open_either(file, broker)
    round_trip_ns, bits = _path(round_trip, rate)
    known = Circumstances(
        flows, window, message_size, topics, web, _queued(queued), read.stated, round_trip_ns, bits,
        unacknowledged_limit, parse_duration(acknowledge_after), loss,
    )  # fmt: skip
    unread = tuple(str(problem).splitlines()[0] for problem in opened.errors)
    findings = tuple(each for each in find(read.profile, known) if each.setting not in read.unknown)
    return LintedProfile(read.profile.name, findings, unread)


def _path(round_trip: str, rate: str) -> tuple[Nanoseconds, int]:
    """Return the round trip and the bit rate of a client's connection; 0 for one that is not given."""
    from qsctl.instant import INFINITE_NS, parse_duration
    from qsctl.sim.scenario.forms.values import BIT_RATE

    round_trip_ns, bits = parse_duration(round_trip), BIT_RATE.parse(rate)
    if round_trip_ns >= INFINITE_NS:
        raise UsageError("--round-trip is infinite", remedy="Write it as in 100ms.")
    assert isinstance(bits, int)
    return round_trip_ns, bits


def _queued(options: Sequence[str] | None) -> dict[Queue, int]:
    from qsctl.profiles.client_profile import Queue

    found: dict[Queue, int] = {}
    for name, text in assignments_of(options, "--queued").items():
        if name not in set(Queue) or not (text.isascii() and text.isdigit() and len(text) <= 12):
            allowed = ", ".join(Queue)
            raise UsageError(f"--queued {name}={text} is not QUEUE=N", remedy=f"Queues are {allowed}; N is work units.")
        found[Queue(name)] = int(text)
    return found


@COMMANDS.command(
    "diff",
    examples=(
        "qsctl client-profile diff profile.json listing.txt",
        "qsctl client-profile diff old.cfg new.cfg --name web -o csv",
        "qsctl client-profile diff broker.cfg#web broker.cfg#desks",
        "qsctl client-profile diff web.json --broker site  # with the broker's profile of the same name",
    ),
)
def diff(
    first: FileArgument,
    second: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Other file, or FILE#NAME, to compare with; left out with --broker.",
            show_default=False,
        ),
    ] = None,
    name: NameOption = None,
    message_vpn: VpnOption = None,
    *,
    broker: BrokerAddress,
) -> ProfileDifference:
    """Compare two client profiles setting by setting, whatever their formats; the exit status is 1 if they differ.

    What one of the files has no place for, or whose value it does not know, is not compared and listed apart; the exit
    status is 3 where values are unknown and nothing else differs.
    """
    from qsctl.profiles.difference import differences
    from qsctl.profiles.formats.file import fields_not_known

    which = ProfileChoice(name, message_vpn)
    first_file, one = which.open(first)
    if second is None:
        which = ProfileChoice(name or one.profile.name, message_vpn or one.profile.message_vpn)
    second_file, other = which.open_either(second, broker)
    skipped = fields_not_known(one, first_file.format) | fields_not_known(other, second_file.format)
    would_differ = {each.field for each in differences(one.profile, other.profile)} & skipped
    unknown = one.unknown.keys() | other.unknown.keys()
    return ProfileDifference(
        str(first), str(second or second_file.name), differences(one.profile, other.profile, but=skipped),
        tuple(sorted(would_differ | unknown)), tuple(sorted(unknown)),
    )  # fmt: skip


@COMMANDS.command(
    "size",
    examples=(
        "qsctl client-profile size --flows 10 --window 255 --message-size 20480 --clients 100",
        "qsctl client-profile size profile.json --flows 2 --round-trip 100ms --rate '1 Gbit/s' --scenario load.xml",
    ),
)
def size(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="File of client profiles; left out: the vendor's defaults.")
    ] = None,
    flows: Annotated[int, typer.Option(min=1, max=200_000, help="Number of consumer flows of one client.")] = 1,
    window: WindowOption = 255,
    message_size: MessageSizeOption = 1024,
    clients: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of clients with this profile.")] = 1,
    round_trip: RoundTripOption = "0",
    rate: RateOption = "0",
    unacknowledged_limit: UnacknowledgedOption = 10_000,
    acknowledge_after: AcknowledgeOption = "0",
    scenario: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Scenario file to write of this load, to check it by simulation."),
    ] = None,
    *,
    which: ProfileChoice,
    force: ForceOption = False,
) -> SizedProfile:
    """Compute what G-1 admits, the demand of flows and windows, and the memory of all clients, with formulas."""
    from qsctl.instant import INFINITE_NS, parse_duration
    from qsctl.profiles.ranges import default_profile
    from qsctl.profiles.sizing import ClientLoad, difference_from_simulation, levers
    from qsctl.profiles.sizing import size as compute

    profile = default_profile()
    if file is not None:
        opened, read = which.open(file)
        opened.require_every_value([read])
        profile = read.profile
    round_trip_ns, bits = _path(round_trip, rate)
    if parse_duration(acknowledge_after) >= INFINITE_NS:
        raise UsageError("--acknowledge-after is infinite", remedy="Write it as in 1s; `lint` explains infinite.")
    load = ClientLoad(
        flows, window, message_size, clients, round_trip_ns, bits, unacknowledged_limit,
        parse_duration(acknowledge_after),
    )  # fmt: skip
    sizing = compute(profile, load)
    if scenario is not None:
        from qsctl.sim.scenario.forms.text import scenario_text
        from qsctl.sim.sizing.offered_load import scenario_of

        written(scenario_text(scenario_of(profile, load)), scenario, force=force)
    return SizedProfile(
        profile.name, sizing, levers(profile, load, sizing), _check(scenario), difference_from_simulation(load)
    )


def _check(scenario: Path | None) -> str:
    """Return the command that finds, by simulation, the smallest `min-msg-burst` with which no message waits."""
    file = shlex.quote(str(scenario)) if scenario is not None else "SCENARIO"
    line = f"qsctl size {file} --target 'waiting_messages(G-1)=0' --vary 'min-msg-burst(G-1)' "
    line += "--set 'profile[sized]/queue[G-1]/max-depth=2'"
    return line if scenario is not None else f"{line} (--scenario SCENARIO writes it)"
