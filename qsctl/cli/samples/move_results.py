"""The results of `qsctl move`, `requeue` and `import`: the numbers of moved and refused samples by target queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted
from qsctl.errors import ExitStatus


@dataclass(frozen=True)
class MovedTo:
    """The outcome for the samples of one target queue."""

    target: str
    moved_count: int
    duplicate_count: int
    refused_count: int
    reason: str

    @property
    def enqueued_count(self) -> int:
        """Return the number of samples that the target did not hold before."""
        return self.moved_count - self.duplicate_count

    @property
    def row(self) -> Row:
        """Return all counts as a row."""
        return {
            "target": self.target,
            "moved_count": self.moved_count,
            "enqueued_count": self.enqueued_count,
            "duplicate_count": self.duplicate_count,
            "refused_count": self.refused_count,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class MovedSamples(Result):
    """Samples that were moved to queues, or would be with `--dry-run`."""

    source: str
    targets: tuple[MovedTo, ...]
    stayed_count: int
    is_trial: bool
    verb: str = "moved"

    field_help: ClassVar[Mapping[str, str]] = {
        "source": "PARTICIPANT/SUBSCRIBER/QUEUE, or the file, that the samples come from",
        "target": "PARTICIPANT/SUBSCRIBER/QUEUE that they are for",
        "moved_count": "samples that are in the target now; with dry_run that would be",
        "enqueued_count": "those of them that were enqueued in it; with dry_run unknown, and counted as enqueued",
        "duplicate_count": "the others: the target held them already",
        "refused_count": "samples that the target refused; they stay where they are",
        "reason": "why it refused the first of them",
        "stayed_count": "samples that have no queue to go to, of all targets (csv and jsonl: repeated in each row)",
        "dry_run": "whether nothing was changed",
    }

    @property
    def moved_count(self) -> int:
        """Return the number of samples that are in their targets."""
        return sum(each.moved_count for each in self.targets)

    @property
    def left_count(self) -> int:
        """Return the number of samples that were refused, or have no target."""
        return self.stayed_count + sum(each.refused_count for each in self.targets)

    @property
    def exit_status(self) -> ExitStatus:
        """Return PARTLY_DONE if some samples stay, REFUSED if all do, else DONE."""
        if not self.left_count:
            return ExitStatus.DONE
        return ExitStatus.PARTLY_DONE if self.moved_count else ExitStatus.REFUSED

    def document(self) -> Plain:
        """Return an object with the targets."""
        return {
            "source": self.source,
            "targets": [each.row for each in self.targets],
            "stayed_count": self.stayed_count,
            "dry_run": self.is_trial,
        }

    def rows(self) -> list[Row]:
        """Return one row per target."""
        return [
            {"source": self.source, **each.row, "stayed_count": self.stayed_count, "dry_run": self.is_trial}
            for each in self.targets
        ]

    def blocks(self) -> list[Block]:
        """Return a sentence, and a table if there are several targets, duplicates or refusals."""
        verb = f"would be {self.verb}" if self.is_trial else self.verb
        to = f" to {self.targets[0].target}" if len(self.targets) == 1 else ""
        there_count = sum(each.duplicate_count for each in self.targets)
        there = f"; {there_count:,} {'was' if there_count == 1 else 'were'} there already" if there_count else ""
        blocks: list[Block] = [
            TextBlock(
                f"{counted(self.moved_count - there_count, 'sample')} {verb}{to} from {self.source}{there}",
                "plain" if self.left_count or self.is_trial else "good",
            )
        ]
        if len(self.targets) > 1 or any(each.duplicate_count or each.refused_count for each in self.targets):
            columns = [
                Column("target", "Queue"),
                Column("enqueued_count", self.verb.capitalize(), "right"),
                Column("duplicate_count", "There already", "right"),
                Column("refused_count", "Refused", "right"),
                Column("reason", "Reason"),
            ]
            blocks.append(TableBlock(columns, self.rows()))
        if self.stayed_count:
            blocks.append(
                TextBlock(
                    f"{counted(self.stayed_count, 'sample')} stay: the queue they come from is not hosted.", "bad"
                )
            )
        return blocks
