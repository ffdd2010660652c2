"""`qsctl consume`: take samples out of a queue (manual, section 2.5)."""

from __future__ import annotations

from typing import Annotated

import typer

from qsctl.cli.command import command
from qsctl.cli.consume_results import Consumed, Settlement
from qsctl.cli.location import open_connection, seconds
from qsctl.cli.options import DEFAULT_SERVICE, DEFAULT_STATE_DIR, DEFAULT_TIMEOUT, ServiceOption, StateDirOption
from qsctl.cli.payloads import TypesOption
from qsctl.cli.service_options import DEFAULT_TARGET, SAMPLES_PANEL, QueueArgument, TargetOption
from qsctl.errors import UsageError


def consume(
    queue: QueueArgument,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, help="The most samples to take; 0: all that are there.")
    ] = 1,
    wait: Annotated[
        str, typer.Option("--timeout", help="How long to wait for the first sample, as in 5s or infinite.")
    ] = "0s",
    reject: Annotated[
        bool, typer.Option("--reject", help="Refuse the samples: they are delivered again or given up.")
    ] = False,
    no_ack: Annotated[
        bool, typer.Option("--no-ack", help="Settle nothing: the samples come again, as redelivered.")
    ] = False,
    types: TypesOption = None,
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    target: TargetOption = DEFAULT_TARGET,
) -> Consumed:
    """Take samples out of a queue and acknowledge them.

    They are acknowledged before they are printed. Exits with 1 when there was none.
    """
    from qsctl.cli.sample_json import read_type_file, reader_of
    from qsctl.client.admin import Administration
    from qsctl.client.taking import take
    from qsctl.core.admin.resolve import short_name

    if reject and no_ack:
        raise UsageError("--reject and --no-ack are both given", remedy="Give one of them.")
    settlement = Settlement.REJECTED if reject else Settlement.NONE if no_ack else Settlement.ACCEPTED
    wait_s = seconds(wait, "--timeout")
    library = read_type_file(types)
    with open_connection(service, state_dir, DEFAULT_TIMEOUT) as connection:
        administration = Administration(connection, target)
        resource = administration.queue_named(queue)
        reader = reader_of(administration, resource, library)
        deliveries = take(connection, short_name(resource), count or None, wait_s, None if no_ack else not reject)
    return Consumed(tuple(deliveries), settlement, reader)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "consume",
        panel=SAMPLES_PANEL,
        examples=(
            "qsctl consume Orders",
            "qsctl consume Orders --count 0 -o jsonl",
            "qsctl consume Orders --timeout 30s --reject",
        ),
    )(consume)
