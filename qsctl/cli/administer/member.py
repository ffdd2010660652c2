"""`qsctl member`: the operator's interventions in a replication cluster, such as forcing a quorum [QS 7.1 and 7.2]."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from qsctl.cli.administer.answers import ServiceAnswers, answers, trial
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, Hit
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import UsageError
from qsctl.resource import ResourceIdentifier, ResourceKind

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL, group="member", help="Help a replicated queue that lost a majority of its logs."
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
    typer.Option("--configuration", help="Let the configuration that the members share form anew, instead of a queue."),
]


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
    if bool(queue) == configuration:
        raise UsageError(
            "a queue and --configuration are both given" if queue else "neither a queue nor --configuration is given",
            remedy="Name a queue, as in `qsctl member force-quorum Orders`, or give --configuration.",
        )
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
