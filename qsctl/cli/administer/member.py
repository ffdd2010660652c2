"""`qsctl member`: changes of the members of a replication cluster, and forcing a quorum [QS 7.1 and 7.2]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer._member_results import Members, members_seen
from qsctl.cli.administer._watching import WatchOptions
from qsctl.cli.administer.answers import ServiceAnswers, answers, trial
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, Hit
from qsctl.cli.output.frames import Frame
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.core.admin.command import MemberAction
from qsctl.errors import Refused, UsageError
from qsctl.resource import ResourceIdentifier, ResourceKind

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL,
    group="member",
    help="List and change the members of a replicated queue, or help one that lost a majority of its logs.",
)

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


@COMMANDS.command("list", examples=("qsctl member list Orders", "qsctl member list Orders -o json"))
def list_members(
    queue: Annotated[
        str, typer.Argument(metavar="QUEUE", help="Queue, named as in `get messages`.", show_default=False)
    ],
    *,
    watch: WatchOptions,
    service: TargetOptions,
) -> Members | Iterator[Frame]:
    """List the members of a replicated queue: vote, role, progress, version and disk of each.

    Each is shown as the master knows it or, while there is none, as it answers itself; ? is unknown. Exits with 7 where
    the queue is not replicated. Reading starts the `change` counters of the status again from zero.
    """

    def look(administration: Administration) -> Members:
        administration.tolerate_silence()
        members = members_seen(administration.statuses(administration.queue_named(queue)))
        if not members:
            raise Refused(
                f"no service reports members of {queue}",
                remedy="Name a replicated queue; `qsctl get replication` has them.",
            )
        return Members(members)

    return watch.looks(service, f"qsctl member list {queue}", look)


@COMMANDS.command(
    "add", examples=("qsctl member add Orders_D Orders", "qsctl member add Orders_D --configuration --dry-run")
)
def add(
    member: MemberName,
    queue: QueueOrNone = "",
    configuration: ConfigurationOption = False,
    *,
    consent: DestructionOptions,
    service: TargetOptions,
) -> ServiceAnswers:
    """Add a member to a replicated queue, without a vote.

    It receives the samples of the queue and its dead letters, and counts for no quorum until it is promoted. Its
    machine runs `qsctl serve --join`. Exits with 7 where the queue has no master, an earlier change is not committed
    yet, or it is a member already.
    """
    return _change(MemberAction.ADD, member, queue, configuration, consent, service)


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
    _check_named(queue, configuration, f"{action} {member}")
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
