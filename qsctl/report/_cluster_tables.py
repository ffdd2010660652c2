"""The tables of a simulated replication cluster: the masters of its replicated queues, and its checked rules."""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.eventlog.run_folder import ReplicatedQueue, RuleVerdict
from qsctl.report._words import count_text, duration_text
from qsctl.report.page import PageTable


def cluster_tables(queues: Sequence[ReplicatedQueue], verdicts: Sequence[RuleVerdict]) -> list[PageTable]:
    """Return the tables of masters and of rules; an empty list for a run of another model."""
    tables = []
    if queues:
        rows = [
            [
                each.queue, count_text(each.replicas), each.first_master or "none", duration_text(each.first_master_ns),
                count_text(each.refused_before), duration_text(each.first_accepted_ns),
                count_text(each.refused_later), count_text(each.elected),
                duration_text(each.longest_without_master_ns),
            ]
            for each in queues
        ]  # fmt: skip
        headings = [
            "Queue", "Replicas", "First master", "Elected at", "Refused before", "First accepted at", "Refused later",
            "Elections", "Longest without master",
        ]  # fmt: skip
        note = (
            "Refused: writes that every replica answered with 0, before there was a first master and after that. "
            "Counts are sums over the replications, times the longest of one."
        )
        tables.append(PageTable("Masters of replicated queues", headings, rows, frozenset((1, *range(3, 9))), note))
    if verdicts:
        rows = [
            [
                each.rule, each.meaning, count_text(each.checked),
                "broken" if each.violations else "holds" if each.checked else "not tested", each.first,
            ]
            for each in verdicts
        ]  # fmt: skip
        headings = ["Rule", "Meaning", "Checked", "Verdict", "First violation"]
        tables.append(PageTable("Rules that the cluster must keep", headings, rows, frozenset((2,))))
    return tables
