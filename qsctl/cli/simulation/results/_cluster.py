"""The results of a simulated cluster: masters of its replicated queues, and verdicts on the rules that it must keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Block, Column, Plain, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results.durations import short_duration

if TYPE_CHECKING:
    from qsctl.eventlog.run_folder import ReplicatedQueue, RuleVerdict


def cluster_fields(queues: Sequence[ReplicatedQueue], verdicts: Sequence[RuleVerdict]) -> dict[str, Plain]:
    """Return the cluster's fields of a document; empty for a run of another model."""
    if not verdicts:
        return {}
    return {"replicated_queues": _queue_rows(queues), "verdicts": _verdict_rows(verdicts)}


def cluster_blocks(
    queues: Sequence[ReplicatedQueue], verdicts: Sequence[RuleVerdict], *, is_summed: bool
) -> list[Block]:
    """Return the cluster's tables; `is_summed`: counts are sums over repetitions, times the longest of one."""
    return _queue_blocks(queues, is_summed=is_summed) + _verdict_blocks(verdicts)


def _queue_rows(queues: Sequence[ReplicatedQueue]) -> list[Row]:
    """Return one row per queue."""
    return [{**fields_of(each), "first_master": each.first_master or None} for each in queues]


def _queue_blocks(queues: Sequence[ReplicatedQueue], *, is_summed: bool) -> list[Block]:
    """Return a table of the queues; `is_summed`: counts are sums over repetitions, times the longest of one."""
    if not queues:
        return []
    total, largest = (" Σ", " max") if is_summed else ("", "")
    columns = [
        Column("queue", "Queue"),
        Column("replicas", "Replicas", "right"),
        Column("first_master", "First master"),
        Column("first", f"Elected at{largest}", "right"),
        Column("refused_before", f"Refused before (Writes){total}", "right"),
        Column("accepted", f"First accepted at{largest}", "right"),
        Column("refused_later", f"Refused later (Writes){total}", "right"),
        Column("elected", f"Elections{total}", "right"),
        Column("longest", "Longest without master", "right"),
    ]
    rows: list[Row] = [
        {
            **row,
            "first": "never" if each.first_master_ns is None else short_duration(each.first_master_ns),
            "accepted": "never" if each.first_accepted_ns is None else short_duration(each.first_accepted_ns),
            "longest": short_duration(each.longest_without_master_ns),
        }
        for row, each in zip(_queue_rows(queues), queues, strict=True)
    ]
    return [TableBlock(columns, rows, title="Masters of replicated queues")]


def _verdict_rows(verdicts: Sequence[RuleVerdict]) -> list[Row]:
    """Return one row per rule."""
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


def _verdict_blocks(verdicts: Sequence[RuleVerdict]) -> list[Block]:
    """Return a table of the rules; for each broken one its first violation, and the schedule that breaks it."""
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
