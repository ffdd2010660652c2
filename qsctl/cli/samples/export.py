"""`qsctl export`: copy the samples of a queue to a file; the queue is unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli._staleness import STALENESS_HELP, AllowStaleOption, Staleness, read_at_members, staleness_fields
from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredResult, row_of
from qsctl.cli.output.payloads import ContentReader, TypesOption
from qsctl.cli.output.results import Block, Plain, TextBlock, counted
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples.move import LimitOption
from qsctl.cli.samples.sample_files import FileFormat, format_of
from qsctl.cli.service_options import QueueArgument, SelectOption, TargetOptions
from qsctl.errors import UsageError
from qsctl.identity import NIL_INCARNATION

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.core.admin.reply import MessageData
    from qsctl.resource import ResourceIdentifier

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

PART_COUNT: Final = 5_000
"""Number of samples read at a time: a queue may hold more than the memory."""

FormatOption = Annotated[
    FileFormat | None,
    typer.Option(
        help="Format of the file: jsonl or parquet.", show_default="parquet for a name that ends so, else jsonl"
    ),
]


@dataclass(frozen=True)
class Exported(DeclaredResult):
    """A file with exported samples."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE"]
    file: Annotated[str, "the file that was written"]
    format: Annotated[str, "jsonl or parquet"]
    sample_count: Annotated[int, "samples in the file"]
    size_bytes: Annotated[int, "size of their contents"]
    staleness: Staleness | None = None
    """None: only members that have a master were asked."""

    document_help: ClassVar[Mapping[str, str]] = STALENESS_HELP

    def document(self) -> Plain:
        """Return the declared fields, and how far behind the samples may be."""
        return {**row_of(Exported, self), **staleness_fields(self.staleness)}

    def blocks(self) -> list[Block]:
        """Return a sentence."""
        size = f"{self.size_bytes:,} octets of content"
        return [
            TextBlock(f"{counted(self.sample_count, 'sample')} of {self.queue_name} in {self.file}, {size}", "good"),
        ]


@COMMANDS.command(
    "export",
    examples=(
        "qsctl export Orders orders.jsonl",
        "qsctl export DeadLetters dead.parquet --limit 1000",
        "qsctl export Orders orders.jsonl --types types.xml --force",
    ),
)
def export(
    queue: QueueArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="File to write, .jsonl or .parquet.", show_default=False),
    ],
    select: SelectOption = "",
    limit: LimitOption = 0,
    format: FormatOption = None,
    types: TypesOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    allow_stale: AllowStaleOption = False,
    *,
    service: TargetOptions,
) -> Exported:
    """Write the samples of a queue into a file, with identity, flags and related identities. They stay in the queue.

    The file appears once it is whole. `qsctl import` reads it. A line has the fields queue_name, position, identity,
    enqueued_at_ns, expires_at_ns, attempts, redelivered, flags, source_guid, related_source_guid, related_identity,
    related_reader_guid, dead_letter_from, dead_letter_reason, dead_letter_position, dead_letter_incarnation,
    incarnation, payload and payload_encoding. Exits with 7 where the queue is replicated and has no master, without
    --allow-stale.
    """
    from qsctl.cli.samples._sample_lines import line_of
    from qsctl.cli.samples.json_form import read_type_file, reader_of
    from qsctl.cli.samples.sample_files import JsonLinesWriter, ParquetWriter, new_file
    from qsctl.client.transfer import require_one_place
    from qsctl.core.admin.resolve import short_name

    if str(file) == "-":
        raise UsageError("export writes files", remedy="`qsctl get messages QUEUE -o jsonl` prints the samples.")
    selector = checked_selector(select)
    form = format_of(file, format)
    library = read_type_file(types)
    with service.open() as administration:
        resource = administration.queue_named(queue)
        require_one_place(administration, resource)
        reader = reader_of(administration, resource, library) if form is FileFormat.JSONL else ContentReader()

        def write() -> tuple[int, int]:
            sample_count = size_bytes = 0
            with new_file(file, force=force) as part:
                writer = JsonLinesWriter(part) if form is FileFormat.JSONL else ParquetWriter(part)
                try:
                    for samples in _parts(administration, resource, selector, limit, allows_stale=allow_stale):
                        writer.write([(line_of(each, reader), each.payload or b"") for each in samples])
                        sample_count += len(samples)
                        size_bytes += sum(each.size_bytes for each in samples)
                finally:
                    writer.close()
            return sample_count, size_bytes

        written, staleness = read_at_members(administration, resource, write, allows_stale=allow_stale)
    return Exported(short_name(resource), str(file), form.value, *written, staleness)


def _parts(
    administration: Administration, queue: ResourceIdentifier, selector: str, limit: int, *, allows_stale: bool
) -> Iterator[list[MessageData]]:
    """Yield the samples of a queue in parts, each sample once, although every replica lists it."""
    after_position, exported_count, incarnation = 0, 0, NIL_INCARNATION
    while not limit or exported_count < limit:
        wanted = min(PART_COUNT, limit - exported_count) if limit else PART_COUNT
        found = administration.messages(queue, selector, wanted, after_position, incarnation, allows_stale=allows_stale)
        part = list({each.body.position: each.body for each in found}.values())[:wanted]
        if not part:
            return
        part.sort(key=lambda sample: sample.position)
        after_position, incarnation = part[-1].position, part[-1].incarnation
        exported_count += len(part)
        yield part
