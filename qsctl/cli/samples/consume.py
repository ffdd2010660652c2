"""`qsctl consume`: receive samples from a queue [QS 2.5]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from qsctl.cli._waiting_service import WaitingService
from qsctl.cli.command import Commands
from qsctl.cli.output.payloads import TypesOption
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples._consume_results import Consumed, ConsumerAnswer
from qsctl.cli.service_options import QueueArgument
from qsctl.errors import NoAnswer, UsageError

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)


@dataclass(frozen=True)
class ConsumedService(WaitingService):
    """The options of the service to consume from; `--timeout` limits the wait for the first sample."""

    timeout: Annotated[
        str,
        typer.Option(
            help="Longest wait for the first sample, a duration such as 5s, or infinite; the service has 10s to "
            "answer at least.",
            rich_help_panel="Service",
        ),
    ] = "0s"


@COMMANDS.command(
    "consume",
    examples=(
        "qsctl consume Orders",
        "qsctl consume Orders --count 0 -o jsonl",
        "qsctl consume Orders --timeout 30s --reject",
    ),
)
def consume(
    queue: QueueArgument,
    count: Annotated[
        int,
        typer.Option(
            "--count",
            "-n",
            min=0,
            max=2**31 - 1,
            help="Largest number of samples to receive; 0: all that the queue has.",
        ),
    ] = 1,
    reject: Annotated[
        bool, typer.Option("--reject", help="Reject the samples; they are redelivered or become dead letters.")
    ] = False,
    no_ack: Annotated[
        bool, typer.Option("--no-ack", help="Leave the samples unacknowledged; they are redelivered.")
    ] = False,
    source_guid: Annotated[
        str, typer.Option(metavar="HEX", help="GUID of the requester whose replies are received.")
    ] = "",
    types: TypesOption = None,
    *,
    service: ConsumedService,
) -> Iterator[Consumed]:
    """Receive samples from a queue, print them, then acknowledge them.

    A sample is acknowledged or rejected once it is printed; one that could not be printed is redelivered. With --reject
    each sample is received at most once, and no more samples than the queue lets one consumer hold. Exits with 1 when
    there was no sample, and with 7 when the service has suspended the queue because its disk is full or fails.
    """
    from qsctl.cli.samples.json_form import read_type_file, reader_of
    from qsctl.client.batches import receive_batches
    from qsctl.core.admin.resolve import short_name
    from qsctl.identity import NIL_GUID, guid_from_hex

    if reject and no_ack:
        raise UsageError("--reject and --no-ack are both given", remedy="Give one of them.")
    acknowledgment = ConsumerAnswer.REJECTED if reject else ConsumerAnswer.NONE if no_ack else ConsumerAnswer.ACCEPTED
    wait_s = service.wait_s
    source = guid_from_hex(source_guid) if source_guid else NIL_GUID
    library = read_type_file(types)
    with service.open() as administration:
        resource = administration.queue_named(queue)
        reader = reader_of(administration, resource, library)
        ok = None if no_ack else not reject
        has_samples = is_complete = False
        try:
            for batch in receive_batches(
                administration.connection, short_name(resource), count or None, wait_s, ok, source
            ):
                has_samples, is_complete = True, batch.is_last
                yield Consumed(batch.deliveries, acknowledgment, reader, batch.is_last)
        except NoAnswer:
            administration.require_delivering(resource)  # a suspended queue answers no consumer
            raise
        if not is_complete:
            administration.require_delivering(resource)
    if not has_samples:
        yield Consumed((), acknowledgment)
