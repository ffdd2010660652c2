"""`qsctl member`: changes of the members of a replication cluster, and forcing a quorum [QS 7.1 and 7.2]."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer._draining import check_drain, handed_over
from qsctl.cli.administer._member_moves import MemberReplacement, Move, Moves, all_statuses, moves_to_spread
from qsctl.cli.administer._member_results import MemberRow, Members, members_seen
from qsctl.cli.administer._watching import WatchOptions
from qsctl.cli.administer.answers import ServiceAnswers, answers, trial
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, Hit
from qsctl.cli.location import seconds
from qsctl.cli.output.frames import Frame
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import ServiceOptions, TargetOptions
from qsctl.core.admin.command import MemberAction
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import CommandReply
from qsctl.errors import Refused, UsageError
from qsctl.identity import NIL_IDENTITY
from qsctl.resource import ResourceIdentifier, ResourceKind

if TYPE_CHECKING:
    from qsctl.client.administration import Administration, FromService
    from qsctl.core.statistics.status import SharedReaderQueueStatus

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL,
    group="member",
    help="List and change the members of a replicated queue, or help one that lost a majority of its logs.",
)

_CATCHING_UP_S: Final = 0.5
"""Time between two attempts to promote a member that has not caught up."""

_MOVED_WITHIN_S: Final = 10
"""Time within which a member becomes the master of a queue by a move."""

_MOVING_S: Final = 0.1
"""Time between two attempts at a move."""

_CONFIGURATION: Final = ResourceIdentifier(leaf=ResourceKind.CONFIGURATION)

QueueOrNone = Annotated[
    str,
    typer.Argument(
        metavar="[QUEUE]", help="Queue, named as in `get messages`; or give --configuration.", show_default=False
    ),
]
ConfigurationOption = Annotated[
    bool,
    typer.Option("--configuration", help="Select the configuration that the members share, instead of a queue."),
]
MemberName = Annotated[
    str, typer.Argument(metavar="MEMBER", help="Application name of the member.", show_default=False)
]


@COMMANDS.command("list", examples=("qsctl member list Orders", "qsctl member list --configuration -o json"))
def list_members(
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    watch: WatchOptions,
    service: TargetOptions,
) -> Members | Iterator[Frame]:
    """List the members of a replicated queue or configuration: vote, role, progress, version and disk of each.

    Each is shown as the master knows it or, while there is none, as it answers itself; ? is unknown. Exits with 7 where
    the queue or the configuration is not replicated, and where no service is of a version that lists the members of a
    configuration. Reading starts the `change` counters of the status of a queue again from zero.
    """
    _check_named(queue, configuration, "list")

    def look(administration: Administration) -> Members:
        administration.tolerate_silence()
        members = _members(administration, None if configuration else administration.queue_named(queue))
        if not members:
            raise Refused(
                f"no service reports members of {queue or 'the configuration'}",
                remedy="Name a replicated queue; `qsctl get replication` has them.",
            )
        return Members(members)

    return watch.looks(service, f"qsctl member list {queue or '--configuration'}", look)


def _members(administration: Administration, resource: ResourceIdentifier | None) -> list[MemberRow]:
    """Return the members of a queue, or of the configuration (None)."""
    return members_seen(_statuses(administration, resource))


def _statuses(
    administration: Administration, resource: ResourceIdentifier | None
) -> list[FromService[SharedReaderQueueStatus]]:
    """Return the status of a queue, or of the configuration (None), from each member that answers."""
    return administration.configuration_statuses() if resource is None else administration.statuses(resource)


@COMMANDS.command(
    "add", examples=("qsctl member add Orders_D Orders", "qsctl member add Orders_W Orders --witness --dry-run")
)
def add(
    member: MemberName,
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    witness: Annotated[
        bool,
        typer.Option(
            "--witness", help="Add it as a witness: it votes once promoted, holds no samples, and is never the master."
        ),
    ] = False,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Add a member to a replicated queue, without a vote.

    It receives the samples of the queue and its dead letters, and counts for no quorum until it is promoted. Its
    machine runs `qsctl serve --join`. Exits with 7 where the queue has no master, an earlier change is not committed
    yet, it is a member already, or was a witness and is added without --witness.
    """
    return _change(
        MemberAction.ADD_WITNESS if witness else MemberAction.ADD, member, queue, configuration, consent, service
    )


@COMMANDS.command("promote", examples=("qsctl member promote Orders_D Orders",))
def promote(
    member: MemberName,
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Give an added member of a replicated queue its vote.

    Exits with 7 where it has not caught up, where the voters that there would be do not include an answering quorum,
    where the queue has no master, and where an earlier change is not committed yet.
    """
    return _change(MemberAction.PROMOTE, member, queue, configuration, consent, service)


@COMMANDS.command(
    "remove", examples=("qsctl member remove Orders_A Orders", "qsctl member remove Orders_A Orders --dry-run")
)
def remove(
    member: MemberName,
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Remove a member from a replicated queue, a dead one too.

    A master that is removed hands over first. Stop the machine of a member once it is removed from all queues. Exits
    with 7 where the voters that would be left do not include an answering quorum, where the queue has no master, and
    where an earlier change is not committed yet.
    """
    return _change(MemberAction.REMOVE, member, queue, configuration, consent, service)


def _change(
    action: MemberAction,
    member: str,
    queue: str,
    configuration: bool,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    _check_named(queue, configuration, f"{action.partition('_')[0]} {member}")
    with service.open() as administration:
        resource = None if configuration else administration.queue_named(queue)
        named = resource or _CONFIGURATION

        def members_after() -> list[Hit]:
            reply = administration.change_members(resource, action, member, is_trial=True)
            return [Hit(reply.replying_service, reply.reply.text)]

        hits = consent.trial(members_after)
        if hits is not None:
            return trial(named, hits)
        return answers(named, [administration.change_members(resource, action, member)])


def _check_named(queue: str, configuration: bool, command: str) -> None:
    """Check that either a queue or the configuration is named.

    Raises:
        UsageError: both are, or neither.
    """
    if bool(queue) == configuration:
        raise UsageError(
            "a queue and --configuration are both given" if queue else "neither a queue nor --configuration is given",
            remedy=f"Name a queue, as in `qsctl member {command} Orders`, or give --configuration.",
        )


@COMMANDS.command(
    "step-down", examples=("qsctl member step-down Orders", "qsctl member step-down Orders --to Orders_B --dry-run")
)
def step_down(
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="MEMBER", help="Application name of the next master; left out: the most up to date voter."
        ),
    ] = "",
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Let the master of a replicated queue hand over to another member.

    The next one is elected at once, without a time-out. Exits with 7 where the queue has no master, and where no other
    voter, or not that of --to, answers and holds all that is committed.
    """
    _check_named(queue, configuration, "step-down")
    with service.open() as administration:
        resource = None if configuration else administration.queue_named(queue)
        named = resource or _CONFIGURATION

        def successor() -> list[Hit]:
            reply = administration.step_down(resource, to, is_trial=True)
            return [Hit(reply.replying_service, reply.reply.text)]

        hits = consent.trial(successor)
        if hits is not None:
            return trial(named, hits)
        return answers(named, [administration.step_down(resource, to)])


@COMMANDS.command(
    "replace",
    examples=(
        "qsctl member replace Orders_A Orders_D Orders",
        "qsctl member replace Orders_A Orders_D --configuration --dry-run",
    ),
)
def replace(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="Application name of the member that leaves.", show_default=False)
    ],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="Application name of the member that joins.", show_default=False)
    ],
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="Longest wait until the new member has caught up, a duration such as 90s or 10m.",
        ),
    ] = "10m",
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Replace a member of a replicated queue or configuration, a dead one too: add, wait until level, promote, remove.

    The machine of the new one runs `qsctl serve --join`. Run it again after a failure: it goes on where it was. Exits
    with 7 where a step is refused, with the reason, as one that would lose the quorum, and where the new member has not
    caught up within --wait.
    """
    _check_named(queue, configuration, f"replace {old} {new}")
    replacement, patience_s = MemberReplacement(old, new), seconds(wait, "--wait")
    with service.open() as administration:
        administration.tolerate_silence()
        resource = None if configuration else administration.queue_named(queue)
        named = resource or _CONFIGURATION
        hits = consent.trial(lambda: [Hit("", each) for each in replacement.steps(_members(administration, resource))])
        if hits is not None:
            return trial(named, hits)
        return answers(named, _replaced(administration, resource, replacement, patience_s))


def _replaced(
    administration: Administration,
    resource: ResourceIdentifier | None,
    replacement: MemberReplacement,
    patience_s: float,
) -> list[CommandReply]:
    """Make the steps of a replacement that are left; return the replies."""
    replies: list[CommandReply] = []
    deadline = time.monotonic() + patience_s
    while True:
        members = _members(administration, resource)
        lags = {each.member: each.lag_count for each in members}
        is_over = time.monotonic() >= deadline
        try:
            if (step := replacement.next_step(members)) is None:
                return replies or [_complete(replacement)]
            replies.append(administration.change_members(resource, *step))
        except Refused:
            is_catching_up = any(each.member == replacement.new for each in members) and lags[replacement.new] != 0
            if is_over or not is_catching_up:
                raise
            time.sleep(_CATCHING_UP_S)
            continue
        if step[0] is MemberAction.REMOVE:  # of a master, perhaps: until the next one is elected nothing is to be seen
            return replies


def _complete(replacement: MemberReplacement) -> CommandReply:
    text = f"{replacement.new} has the place of {replacement.old} already"
    return CommandReply(NIL_IDENTITY, "", Reply(ReturnCode.OK, text))


@COMMANDS.command("rebalance", examples=("qsctl member rebalance --dry-run", "qsctl member rebalance --yes"))
def rebalance(*, consent: DestructionOptions, service: TargetOptions) -> Moves:
    """Spread the masters of all replicated queues, and of a replicated configuration, evenly over the members.

    Moves one after the other, each to a voter that holds all that is committed. Exits with 7 where a move is refused,
    or not made within 10 s; the moves before it remain. Run it again then.
    """
    with service.open() as administration:
        administration.tolerate_silence()
        moves = moves_to_spread(all_statuses(administration))
        hits = consent.trial(lambda: [Hit("", f"{each.queue_name}: {each.former} to {each.master}") for each in moves])
        if hits is not None:
            return Moves(moves)
        for each in moves:
            is_queue = each.queue_name != ResourceKind.CONFIGURATION
            _move(administration, administration.queue_named(each.queue_name) if is_queue else None, each)
        return Moves([dataclasses.replace(each, is_done=True) for each in moves])


def _move(administration: Administration, resource: ResourceIdentifier | None, move: Move) -> None:
    """Let a member be the master of a queue, or of the configuration (None), and wait until it is.

    Raises:
        Refused: it is not, after ten seconds.
    """
    deadline = time.monotonic() + _MOVED_WITHIN_S
    refusal = Refused(f"{move.master} does not become the master of {move.queue_name}", remedy="Run it again.")
    while time.monotonic() < deadline:
        for service, status in _statuses(administration, resource):
            if service == move.master and status.replication is not None and status.replication.role == "master":
                return
        try:
            administration.step_down(resource, move.master)
        except Refused as error:
            refusal = error  # there is no master just now, or it lacks an entry that is on its way
        time.sleep(_MOVING_S)
    raise refusal


@COMMANDS.command("drain", examples=("qsctl member drain Orders_A --dry-run", "qsctl member drain Orders_A"))
def drain(member: MemberName, *, consent: DestructionOptions, service: ServiceOptions) -> ServiceAnswers:
    """Let a member hand over all that it is the master of, before the machine is maintained.

    The member is no master again before it restarts: stop it afterwards, with SIGTERM or `qsctl shutdown`, which
    drains and stops with --drain. Exits with 7 where no other member can be the master of a queue, and where fewer
    voters than a quorum would be left.
    """
    with service.open(member) as administration:
        check_drain(administration, administration.service_data())
        hits = consent.trial(lambda: handed_over(administration))
        if hits is not None:
            return trial("/", hits)
        return answers("/", administration.drain())


@COMMANDS.command(
    "force-quorum", examples=("qsctl member force-quorum Orders", "qsctl member force-quorum --configuration --dry-run")
)
def force_quorum(
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Let a replicated queue form anew after the loss of a majority of its logs.

    Accepted samples may be lost: those only in the lost logs, or only at members that do not answer now. The
    members that answer go on with the longest log among them; one that comes back later drops what it has and
    follows. Where members have different creations of the queue and none of them has a quorum, that of most members
    goes on, and the others drop theirs. Start all members that can be started first. On a terminal it shows what
    would become of each replica, and asks. Exits with 7 where there is a master, a quorum still has its log, or
    fewer members than a quorum answer.
    """
    _check_named(queue, configuration, "force-quorum")
    with service.open() as administration:
        resource = None if configuration else administration.queue_named(queue)
        named = resource or _CONFIGURATION
        hits = consent.trial(
            lambda: [
                Hit(each.replying_service, each.reply.text)
                for each in administration.force_quorum(resource, is_trial=True)
            ]
        )
        if hits is not None:
            return trial(named, hits)
        return answers(named, administration.force_quorum(resource))
