"""`qsctl get status`, `get replication`, `get data` and `get messages` [QS 5.4.4 to 5.4.6, 7.1]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._staleness import AllowStaleOption, read_at_members
from qsctl.cli.administer._watching import WatchOptions
from qsctl.cli.administer.get_results import Messages, QueueDataList, Statuses, holdings
from qsctl.cli.administer.live_configuration import COMMANDS as CONFIGURATION_COMMANDS
from qsctl.cli.administer.replication_results import Replications
from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.command import Commands
from qsctl.cli.output.frames import Frame
from qsctl.cli.output.payloads import TypesOption
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import QueueArgument, SelectOption, TargetOptions

if TYPE_CHECKING:
    from qsctl.client.administration import Administration, FromService
    from qsctl.core.admin.reply import MessageData

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL,
    group="get",
    help="Read a service: status, replication, data, messages, configuration.",
    parts=(CONFIGURATION_COMMANDS,),
)

OptionalQueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="[QUEUE]", help="Queue, named as in `get messages`; left out: every queue.", show_default=False
    ),
]


@COMMANDS.command(
    "status",
    examples=(
        "qsctl get status",
        "qsctl get status Orders -o json",
        "qsctl get status --watch --interval 1s",
        "qsctl get status -o csv > status.csv",
    ),
)
def get_status(
    queue: OptionalQueueArgument = "",
    *,
    watch: WatchOptions,
    service: TargetOptions,
) -> Statuses | Iterator[Frame]:
    """Show counters, throughput and latency of one queue or of all.

    Reading starts the `change` counters again from zero.
    """
    return watch.looks(service, f"qsctl get status {queue}".rstrip(), lambda services: statuses_of(services, queue))


def statuses_of(administration: Administration, queue: str) -> Statuses:
    """Return the status of one queue with every field, or (empty name) of all queues."""
    if queue:
        return Statuses(tuple(administration.statuses(administration.queue_named(queue))), detailed=True)
    return Statuses(tuple(administration.statuses()))


@COMMANDS.command("replication", examples=("qsctl get replication", "qsctl get replication Orders -o json"))
def get_replication(
    queue: OptionalQueueArgument = "",
    *,
    watch: WatchOptions,
    service: TargetOptions,
) -> Replications | Iterator[Frame]:
    """Show the replicas of one replicated queue or of all: role, epoch, master, quorum and lag of each.

    Below them is a row for each member of each queue, as in `member list`. A discovered service that does not answer
    within --timeout has a row "no answer", whatever queues it hosts. Reading starts the `change` counters of the status
    again from zero.
    """

    def look(administration: Administration) -> Replications:
        administration.tolerate_silence()
        resource = administration.queue_named(queue) if queue else None
        statuses = tuple(administration.statuses(resource) if resource else administration.statuses())
        return Replications(statuses, administration.silent)

    return watch.looks(service, f"qsctl get replication {queue}".rstrip(), look)


@COMMANDS.command("data", examples=("qsctl get data", "qsctl get data Orders -o yaml"))
def get_data(
    queue: OptionalQueueArgument = "",
    *,
    service: TargetOptions,
) -> QueueDataList:
    """Show what the service hosts: queues with their topics, subscribers, domain participants."""
    with service.open() as administration:
        if queue:
            return QueueDataList(tuple(administration.queue_data(administration.queue_named(queue))))
        return holdings(administration.service_data())


@COMMANDS.command(
    "messages",
    examples=(
        "qsctl get messages Orders",
        "qsctl get messages Orders --select '@sample_queue_status = SENT_MESSAGE_STATUS' -o jsonl",
    ),
)
def get_messages(
    queue: QueueArgument,
    select: SelectOption = "",
    count: Annotated[
        int,
        typer.Option("--count", "-n", min=0, max=2**31 - 1, help="Largest number of samples to show; 0: all of them."),
    ] = 0,
    types: TypesOption = None,
    allow_stale: AllowStaleOption = False,
    *,
    service: TargetOptions,
) -> Messages:
    """Show the samples in a queue, all of them or those that a selector matches. They stay in the queue.

    Exits with 7 where the queue is replicated and has no master, without --allow-stale.
    """
    from qsctl.cli.samples.json_form import read_type_file, reader_of

    selector = checked_selector(select)
    library = read_type_file(types)
    with service.open() as administration:
        resource = administration.queue_named(queue)
        reader = reader_of(administration, resource, library)

        def read() -> list[FromService[MessageData]]:
            return administration.messages(resource, selector, count, allows_stale=allow_stale)

        found, staleness = read_at_members(administration, resource, read, allows_stale=allow_stale)
        return Messages(tuple(found[: count or None]), reader, staleness)
