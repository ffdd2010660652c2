"""Kafka: the output of `kafka-consumer-groups --describe`, of one group or of all.

Columns are separated by blanks, and `-` is no value. A queue is a group's share of one topic: the lag of each partition
waits, and a consumer is a member that has a partition of it. The end of the log counts what arrived: two files have the
rate between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from qsctl.declared.problems import ProblemList, shown
from qsctl.profiles.listings.labels import read_count
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed.model import ForeignQueue

_NEEDED: Final = ("TOPIC", "PARTITION", "LAG")
PARTITIONS_MAX: Final = 10_000


def is_heading(line: str) -> bool:
    """Return whether a line is the heading of a description."""
    words = line.split()
    return all(each in words for each in _NEEDED)


@dataclass(slots=True)
class _TopicLags:
    lags: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)


def read_table(lines: Sequence[tuple[int, str]], findings: ProblemList) -> Iterator[ForeignQueue]:
    """Yield a queue for each group and topic of a description.

    Args:
        lines: with their numbers; the first one is a heading.
        findings: receives a finding for each row that cannot be read.
    """
    columns: Sequence[str] = ()
    groups: dict[tuple[str, str], _TopicLags] = {}
    for number, line in lines:
        if is_heading(line):
            columns = line.split()
            continue
        cells = line.split()
        if not columns or len(cells) != len(columns):
            if cells and not line.startswith(("Consumer group", "Warning", "Note")):
                findings.add(
                    number,
                    "the row has another number of columns than the heading",
                    found=f"{len(cells)} columns",
                    allowed=shown(f"{len(columns)}: {' '.join(columns)[:80]}"),
                )
            continue
        row = dict(zip(columns, cells, strict=True))
        try:
            partition = read_count(row["PARTITION"])
            lag = None if row["LAG"] == "-" else read_count(row["LAG"])
            end = row.get("LOG-END-OFFSET", "-")
            ends_at = None if end == "-" else read_count(end)
        except ValueError:
            if row["PARTITION"] != "-":
                findings.add(
                    number,
                    "the row is passed over",
                    found=line.strip()[:80],
                    allowed="whole numbers in PARTITION, LOG-END-OFFSET and LAG",
                )
            continue
        group = groups.setdefault((row.get("GROUP", ""), row["TOPIC"]), _TopicLags())
        if len(group.lags) >= PARTITIONS_MAX:
            findings.add(number, "the partition is passed over", allowed=f"at most {PARTITIONS_MAX} of a topic")
            continue
        group.lags[partition] = (ends_at or 0) if lag is None else lag  # nothing was committed: all of it waits
        if ends_at is not None:
            group.ends[partition] = ends_at
        if row.get("CONSUMER-ID", "-") != "-":
            group.members.add(row["CONSUMER-ID"])
    for (name, topic), group in groups.items():
        yield ForeignQueue(
            f"{name}:{topic}" if name else topic, BrokerKind.KAFKA_GROUP, {}, consumers=len(group.members),
            waiting=sum(group.lags.values()), partitions=tuple(group.lags[each] for each in sorted(group.lags)),
            arrived=sum(group.ends.values()) if len(group.ends) == len(group.lags) else None,
        )  # fmt: skip
