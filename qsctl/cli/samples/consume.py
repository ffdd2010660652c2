"""`qsctl consume`: receive samples from a queue (manual, section 2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from qsctl.cli.command import command
from qsctl.cli.location import open_connection, seconds
from qsctl.cli.options import DEFAULT_SERVICE, DEFAULT_STATE_DIR, DEFAULT_TIMEOUT, ServiceOption, StateDirOption
from qsctl.cli.output.payloads import TypesOption
from qsctl.cli.samples.consume_results import Consumed, Settlement
from qsctl.cli.service_options import DEFAULT_TARGET, SAMPLES_PANEL, QueueArgument, TargetOption
from qsctl.errors import UsageError


def consume(
    queue: QueueArgument,
    count: Annotated[
        int,
        typer.Option("--count", "-n", min=0, max=2**31 - 1, help="The most samples to receive; 0: all that are there."),
    ] = 1,
    wait: Annotated[
        str,
        typer.Option(
            "--timeout",
            help="How long to wait for the first sample, as in 5s or infinite; the service has 10s to answer at least.",
        ),
    ] = "0s",
    reject: Annotated[
        bool, typer.Option("--reject", help="Refuse the samples: they are delivered again or given up.")
    ] = False,
    no_ack: Annotated[
        bool, typer.Option("--no-ack", help="Answer nothing: the samples come again, as redelivered.")
    ] = False,
    source_guid: Annotated[
        str,
        typer.Option(
            "--source-guid", metavar="HEX", help="Receive the replies that wait for this requester.", show_default=False
        ),
    ] = "",
    types: TypesOption = None,
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    target: TargetOption = DEFAULT_TARGET,
) -> Iterator[Consumed]:
    """Receive samples from a queue, print them, then acknowledge them.

    A sample is acknowledged or rejected once it is printed; one that could not be printed comes again, as redelivered.
    With --reject each sample comes at most once, and no more than the queue lets one consumer hold. Exits with 1 when
    there was none.
    """
    from qsctl.cli.samples.json_form import read_type_file, reader_of
    from qsctl.client.admin import Administration
    from qsctl.client.taking import take
    from qsctl.core.admin.resolve import short_name
    from qsctl.identity import NIL_GUID, guid_from_hex

    if reject and no_ack:
        raise UsageError("--reject and --no-ack are both given", remedy="Give one of them.")
    settlement = Settlement.REJECTED if reject else Settlement.NONE if no_ack else Settlement.ACCEPTED
    wait_s = seconds(wait, "--timeout")
    source = guid_from_hex(source_guid) if source_guid else NIL_GUID
    library = read_type_file(types)
    answer_wait = wait if wait_s > seconds(DEFAULT_TIMEOUT, "--timeout") else DEFAULT_TIMEOUT
    with open_connection(service, state_dir, answer_wait) as connection:
        administration = Administration(connection, target)
        resource = administration.queue_named(queue)
        reader = reader_of(administration, resource, library)
        ok = None if no_ack else not reject
        has_samples = False
        for batch in take(connection, short_name(resource), count or None, wait_s, ok, source):
            has_samples = True
            yield Consumed(batch.deliveries, settlement, reader, batch.is_last)
    if not has_samples:
        yield Consumed((), settlement)


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
