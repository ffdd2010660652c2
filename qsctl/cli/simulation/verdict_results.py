"""What a simulated cluster made of the rules that it must keep: a line each, and how a violation is seen again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Block, Column, Row, TableBlock, TextBlock
from qsctl.cli.simulation.summarize_results import short_duration

if TYPE_CHECKING:
    from qsctl.eventlog.run_folder import RuleVerdict


def verdict_rows(verdicts: Sequence[RuleVerdict]) -> list[Row]:
    """One row a rule."""
    return [
        {
            "rule": each.rule,
            "meaning": each.meaning,
            "checked": each.checked,
            "violations": each.violations,
            "first_ns": each.first_ns if each.violations else None,
            "first": each.first,
            "replay": each.replay,
        }
        for each in verdicts
    ]


def verdict_blocks(verdicts: Sequence[RuleVerdict]) -> list[Block]:
    """A table of the rules; of each broken one what was found, and the schedule that breaks it."""
    if not verdicts:
        return []
    columns = [
        Column("rule", "Rule"),
        Column("meaning", "Meaning"),
        Column("checked", "Checked", "right"),
        Column("verdict", "Verdict"),
    ]
    rows: list[Row] = [
        {
            "rule": each.rule,
            "meaning": each.meaning,
            "checked": each.checked,
            "verdict": f"broken {each.violations} ×" if each.violations else "holds" if each.checked else "not tested",
        }
        for each in verdicts
    ]
    blocks: list[Block] = [TableBlock(columns, rows, title="Verdicts")]
    blocks += [
        TextBlock(f"{each.rule}, at {short_duration(each.first_ns)}: {each.first}", "bad")
        for each in verdicts
        if each.violations
    ]
    replay = next((each.replay for each in verdicts if each.replay), "")
    if replay:
        blocks.append(
            TextBlock(
                "These faults break it. Save them as found.txt, and see it again with "
                f"--set world/schedule=found.txt:\n\n{replay}"
            )
        )
    return blocks
