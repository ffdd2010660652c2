"""The results of `qsctl record`: the recording of each service that answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.administer.answers import SERVICE_HELP
from qsctl.cli.output.results import Block, Plain, Result, Row, TextBlock, fields_of
from qsctl.instant import format_duration

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.admin.reply import RecordingStatus


@dataclass(frozen=True)
class RecordingStates(Result):
    """The recordings of the services that a command was sent to: one, unless the target pattern matches several."""

    recordings: tuple[FromService[RecordingStatus], ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "folder": "folder on the service's own machine; empty: there was no recording",
        "end": "why it ended: stopped, limit (of its size), service_gone, overrun, failed; empty while it goes on",
        "text": "error in words",
        "level": "counters, messages or events",
        "sample_share": "share of the samples that have rows",
        "max_bytes": "size that ends it; 0: none",
        "started_at_ns": "Unix time of its beginning, in nanoseconds",
        "duration_ns": "time since its beginning up to the latest event, in nanoseconds",
        "message_rows": "samples whose fate is known",
        "bytes": "size of the folder, as of about a second ago",
        "is_complete": "whether the folder is finished",
        **SERVICE_HELP,
        "services": "where several answered: one object each (csv and jsonl: one row each); the rest is of the first",
    }

    def document(self) -> Plain:
        """Return an object: the first recording, and the others under `services`."""
        rows = self.rows()
        return {**rows[0], **({"services": rows} if len(rows) > 1 else {})}

    def rows(self) -> list[Row]:
        """Return one row per service."""
        return [{"service": each.service, **fields_of(each.body)} for each in self.recordings]

    def blocks(self) -> list[Block]:
        """Return a line for each service."""
        several = len(self.recordings) > 1
        return [
            TextBlock(
                f"{each.service}: " * several + _sentence(each.body),
                "plain" if not each.body.end else "good" if each.body.end == "stopped" else "bad",
            )
            for each in self.recordings
        ]


def _sentence(status: RecordingStatus) -> str:
    if not status.folder:
        return "There was no recording."
    share = f", {status.sample_share:.4g} of the samples" if status.sample_share < 1 else ""
    far = (
        f"{status.message_rows:,} rows of messages and {status.bytes:,} bytes in {format_duration(status.duration_ns)}"
    )
    what = f"level {status.level}{share}"
    if status.is_on:
        return f"Recording into {status.folder}, {what}: {far}."
    why = "" if status.end == "stopped" else f" ({status.end}: {status.text})" if status.text else f" ({status.end})"
    return f"The recording in {status.folder} has ended{why}, {what}: {far}."
