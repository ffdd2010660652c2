"""The result of `qsctl bridge`, and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block, TextBlock, counted
from qsctl.errors import ExitStatus
from qsctl.instant import SECOND_NS

if TYPE_CHECKING:
    from qsctl.client.bridge.driver import BridgeDriver

_METRICS: Final = (
    ("moved_total", "counter", "Samples that the target stored, or held already."),
    ("duplicates_total", "counter", "Those of them that the target held already."),
    ("left_samples", "gauge", "Samples that do not cross, for they have crossed enough bridges."),
    ("refused_samples", "gauge", "Samples that the target refuses for what they are."),
    ("lag_seconds", "gauge", "Age of the sample that crossed last; 0 if none waits."),
    ("updated_seconds", "gauge", "Instant of these figures, in Unix seconds."),
)


@dataclass(frozen=True)
class Bridged(DeclaredResult):
    """The samples that crossed a bridge until it ended, and those that did not."""

    source: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE that the samples come from"]
    target: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE that they are for"]
    mirror: Annotated[bool, "whether the source keeps its samples"]
    moved_count: Annotated[int, "samples that are in the target; with dry_run that would be"]
    duplicate_count: Annotated[int, "those of them that the target held already"]
    left_count: Annotated[int, "samples that do not cross, for they have crossed enough bridges"]
    refused_count: Annotated[int, "samples that the target refuses for what they are"]
    refused_reason: Annotated[str, "why it refuses the last of them"]
    obstacle: Annotated[str, "why the target accepted no more at the end; empty: it did"]
    last_error: Annotated[str, "the last error or obstacle of the run, which may have passed"]
    dry_run: Annotated[bool, "whether nothing was changed"]
    ends_by_itself: bool = False

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE, or with `--once`, where the target refused samples, PARTLY_DONE, or REFUSED if all."""
        if not self.ends_by_itself or not (self.obstacle or self.refused_count):
            return ExitStatus.DONE
        return ExitStatus.PARTLY_DONE if self.moved_count else ExitStatus.REFUSED

    def blocks(self) -> Sequence[Block]:
        """Return a sentence on what crossed, and one on what did not."""
        verb = "copied" if self.mirror else "moved"
        would = "would be " if self.dry_run else ""
        there = f"; {self.duplicate_count:,} of them were there already" if self.duplicate_count else ""
        moved = f"{counted(self.moved_count, 'sample')} {would}{verb} to {self.target} from {self.source}{there}"
        blocks: list[Block] = [TextBlock(moved)]
        if self.left_count:
            blocks.append(TextBlock(f"{counted(self.left_count, 'sample')} crossed enough bridges before", "faint"))
        if self.refused_count:
            blocks.append(TextBlock(f"{counted(self.refused_count, 'sample')} refused: {self.refused_reason}", "bad"))
        if self.obstacle:
            blocks.append(TextBlock(f"The target accepts no more: {self.obstacle}", "bad"))
        return blocks


def bridge_metrics(driver: BridgeDriver, source: str, target: str, now_s: float) -> str:
    """Return the figures of a running bridge in the text format of Prometheus."""
    from qsctl.client.bridge.driver import BridgeState

    counts = driver.bridge.counts
    is_behind = not driver.is_empty and counts.latest_enqueued_at_ns > 0
    lag_s = max(0.0, now_s - counts.latest_enqueued_at_ns / SECOND_NS) if is_behind else 0.0
    values = (
        counts.moved_count,
        counts.duplicate_count,
        counts.left_count,
        counts.refused_count,
        round(lag_s, 3),
        round(now_s, 3),
    )
    labels = f'source="{_escaped(source)}",target="{_escaped(target)}"'
    lines: list[str] = []
    for (name, kind, text), value in zip(_METRICS, values, strict=True):
        lines += (f"# HELP qsctl_bridge_{name} {text}", f"# TYPE qsctl_bridge_{name} {kind}")
        lines.append(f"qsctl_bridge_{name}{{{labels}}} {value}")
    lines += ("# HELP qsctl_bridge_state What the bridge does: 1 for its state.", "# TYPE qsctl_bridge_state gauge")
    lines += (f'qsctl_bridge_state{{{labels},state="{each}"}} {int(each is driver.state)}' for each in BridgeState)
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
