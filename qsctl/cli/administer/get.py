"""`qsctl get status`, `get data` and `get messages` (manual, sections 5.4.4 to 5.4.6)."""

from __future__ import annotations

from typing import Annotated

import typer

from qsctl.cli.administer.get_results import Messages, QueueDataList, Statuses, holdings
from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.command import command
from qsctl.cli.location import open_connection
from qsctl.cli.options import (
    DEFAULT_SERVICE,
    DEFAULT_STATE_DIR,
    DEFAULT_TIMEOUT,
    ServiceOption,
    StateDirOption,
    TimeoutOption,
)
from qsctl.cli.output.payloads import TypesOption
from qsctl.cli.service_options import DEFAULT_TARGET, SERVICE_PANEL, QueueArgument, SelectOption, TargetOption

OptionalQueueArgument = Annotated[
    str,
    typer.Argument(metavar="[QUEUE]", help="As in `get messages`; left out: every queue.", show_default=False),
]


def get_status(
    queue: OptionalQueueArgument = "",
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> Statuses:
    """Show counters, throughput and latency of one queue or of all.

    Reading starts the `change` counters again from zero.
    """
    from qsctl.client.admin import Administration

    with open_connection(service, state_dir, timeout) as connection:
        administration = Administration(connection, target)
        if queue:
            return Statuses(tuple(administration.statuses(administration.queue_named(queue))), detailed=True)
        return Statuses(tuple(administration.statuses()))


def get_data(
    queue: OptionalQueueArgument = "",
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> QueueDataList:
    """Show what the service hosts: queues with their topics, subscribers, domain participants."""
    from qsctl.client.admin import Administration

    with open_connection(service, state_dir, timeout) as connection:
        administration = Administration(connection, target)
        if queue:
            return QueueDataList(tuple(administration.queue_data(administration.queue_named(queue))))
        return holdings(administration.service_data())


def get_messages(
    queue: QueueArgument,
    select: SelectOption = "",
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, max=2**31 - 1, help="The most samples to show; 0: all.")
    ] = 0,
    types: TypesOption = None,
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> Messages:
    """Show the samples in a queue, all of them or those that a selector picks. They stay in the queue."""
    from qsctl.cli.samples.json_form import read_type_file, reader_of
    from qsctl.client.admin import Administration

    selector = checked_selector(select)
    library = read_type_file(types)
    with open_connection(service, state_dir, timeout) as connection:
        administration = Administration(connection, target)
        resource = administration.queue_named(queue)
        reader = reader_of(administration, resource, library)
        found = administration.messages(resource, selector, count)
        return Messages(tuple(found[: count or None]), reader)


def register(app: typer.Typer) -> None:
    """Add the group and its commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at a service: status, data, messages.")
    command(
        group,
        "status",
        examples=("qsctl get status", "qsctl get status Orders -o json", "qsctl get status -o csv > status.csv"),
    )(get_status)
    command(
        group,
        "data",
        examples=("qsctl get data", "qsctl get data Orders -o yaml"),
    )(get_data)
    command(
        group,
        "messages",
        examples=(
            "qsctl get messages Orders",
            "qsctl get messages Orders --select '@sample_queue_status = SENT_MESSAGE_STATUS' -o jsonl",
        ),
    )(get_messages)
    app.add_typer(group, name="get", rich_help_panel=SERVICE_PANEL)
