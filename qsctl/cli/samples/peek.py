"""`qsctl peek`: show the first samples of a queue with all their fields, without delivering them [QS 5.4.6]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli._staleness import STALENESS_HELP, AllowStaleOption, Staleness, read_at_members, staleness_fields
from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.command import Commands
from qsctl.cli.output.payloads import ContentReader, TypesOption
from qsctl.cli.output.results import Block, Column, ListResult, Plain, Row, TableBlock, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import QueueArgument, SelectOption, TargetOptions
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.admin.reply import MessageData

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)


@dataclass(frozen=True)
class Peeked(ListResult):
    """Samples in their queue, with all their fields."""

    samples: tuple[MessageData, ...]
    reader: ContentReader = ContentReader()
    staleness: Staleness | None = None
    """None: only members that have a master were asked."""

    field_help: ClassVar[Mapping[str, str]] = {
        "status": "UNDELIVERED, SENT or DELIVERED",
        "size_bytes": "size of the content",
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "position": "place in the queue, never reused",
        "identity": "WRITER_GUID:SEQUENCE_NUMBER",
        "enqueued_at_ns": "instant of entering, nanoseconds since 1970",
        "expires_at_ns": "instant of the end of its lifespan, nanoseconds since 1970; null: never",
        "attempts": "deliveries that failed",
        "redelivered": "a consumer may have processed it already",
        "flags": "flag bits: 4 replicate, 256 enqueued by a command",
        "source_guid": "GUID that a reply is addressed to",
        "related_source_guid": "of a reply: GUID of its requester",
        "related_identity": "of a reply: the request",
        "related_reader_guid": "of a reply: the requester's reader",
        "dead_letter_from": "of a dead letter: TOPIC@SUBSCRIBER it came from",
        "dead_letter_reason": "of a dead letter: LIFESPAN or MAX_RETRIES",
        "dead_letter_position": "of a dead letter: its position in that queue",
        "dead_letter_incarnation": "of a dead letter: incarnation of that queue, hexadecimal",
        "incarnation": "which creation of the queue its position is of, hexadecimal; empty: not recorded",
        "payload": "the sample's content; with --types an object by the queue's type",
        "payload_encoding": "text (it is UTF-8), base64, or json (--types)",
        **STALENESS_HELP,
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if there was no sample, else DONE."""
        return ExitStatus.DONE if self.samples else ExitStatus.NO

    def rows(self) -> list[Row]:
        """Return one row per sample."""
        from qsctl.cli.samples._sample_lines import line_of

        return [
            {
                "status": each.status.name,
                "size_bytes": each.size_bytes,
                **{name: _plain(value) for name, value in line_of(each, self.reader).items()},
                **staleness_fields(self.staleness),
            }
            for each in self.samples
        ]

    def blocks(self) -> list[Block]:
        """Return a table of fields for each sample, then its whole content."""
        columns = [Column("field", "Field"), Column("value", "Value")]
        blocks: list[Block] = []
        for row in self.rows():
            shown: list[Row] = [
                {"field": name, "value": value}
                for name, value in row.items()
                if name not in ("payload", "queue_name", *STALENESS_HELP) and value not in ("", None)
            ]
            blocks += [TableBlock(columns, shown, str(row["queue_name"])), TextBlock(_whole(row["payload"]))]
        return blocks or [TextBlock("No samples.", "faint")]


@COMMANDS.command(
    "peek",
    examples=(
        "qsctl peek Orders",
        "qsctl peek DeadLetters -n 5 -o jsonl",
        "qsctl peek Orders --after 1000 --types types.xml",
    ),
)
def peek(
    queue: QueueArgument,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=100_000, help="Largest number of samples to show.")
    ] = 1,
    select: SelectOption = "",
    after: Annotated[
        int, typer.Option(min=0, max=2**62, metavar="POSITION", help="Position behind which samples are shown.")
    ] = 0,
    incarnation: Annotated[
        str,
        typer.Option(
            metavar="HEX",
            help="Incarnation of the queue that the position of --after is of, as peek shows it.",
            show_default="that of the queue",
        ),
    ] = "",
    types: TypesOption = None,
    allow_stale: AllowStaleOption = False,
    *,
    service: TargetOptions,
) -> Peeked:
    """Show the first samples of a queue with all their fields and the whole content, and leave them as they are.

    Nothing is delivered: no attempt is counted, and no flag set. A queue that was deleted and created again has its
    positions anew: with --incarnation a position of the earlier one is refused. Exits with 1 when there is no sample,
    and with 7 where the queue is replicated and has no master, without --allow-stale.
    """
    from qsctl.cli.samples.json_form import read_type_file, reader_of
    from qsctl.identity import incarnation_from_text

    selector = checked_selector(select)
    position_of = incarnation_from_text(incarnation)
    library = read_type_file(types)
    with service.open() as administration:
        resource = administration.queue_named(queue)
        reader = reader_of(administration, resource, library)

        def read() -> list[FromService[MessageData]]:
            return administration.messages(resource, selector, count, after, position_of, allows_stale=allow_stale)

        found, staleness = read_at_members(administration, resource, read, allows_stale=allow_stale)
        samples = list({each.body.position: each.body for each in found}.values())
        return Peeked(tuple(sorted(samples, key=lambda sample: sample.position)[:count]), reader, staleness)


def _plain(value: object) -> Plain:
    from qsctl.cli.output.results import plain

    return plain(value)


def _whole(content: Plain) -> str:
    import json

    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
