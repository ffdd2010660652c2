"""`qsctl member`: the members of a replication cluster, where nothing but an operator's word helps [QS 7.1]."""

from __future__ import annotations

from typing import Final

from qsctl.cli.administer.answers import Answers, answers, trial
from qsctl.cli.command import Commands
from qsctl.cli.confirmation import DestructionOptions, Hit
from qsctl.cli.service_options import SERVICE_PANEL, QueueArgument, TargetOptions

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL, group="member", help="Help a replicated queue that lost a majority of its logs."
)


@COMMANDS.command("force-quorum", examples=("qsctl member force-quorum Orders",))
def force_quorum(name: QueueArgument, *, consent: DestructionOptions, service: TargetOptions) -> Answers:
    """Let a replicated queue form anew after the loss of a majority of its logs.

    What may be lost: every accepted sample that is only in the logs that are lost, or at members that do not answer
    now. The members that answer go on with the longest log among them; one that comes back later drops what it has and
    follows. Start all members that can be started first. On a terminal it shows what would become of each replica, and
    asks. Exits with 7 where the queue has a master, a quorum still has its log, or fewer members than a quorum answer.
    """
    with service.open() as administration:
        resource = administration.queue_named(name)
        hits = consent.trial(
            lambda: [
                Hit(each.replying_service, each.reply.text)
                for each in administration.force_quorum(resource, is_trial=True)
            ]
        )
        if hits is not None:
            return trial(resource, hits)
        return answers(resource, administration.force_quorum(resource))
