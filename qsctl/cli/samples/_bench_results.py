"""The results of `qsctl bench`: rates, latencies, and whether they meet the requirements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted
from qsctl.errors import ExitStatus

LATENCIES: Final = ("p50_us", "p90_us", "p99_us", "p99.9_us", "p99.99_us", "max_us", "mean_us")


@dataclass(frozen=True)
class Benchmark(Result):
    """The load on a queue, and the measured rates and latencies."""

    load: Mapping[str, Plain]
    counts: Mapping[str, int]
    rates: Mapping[str, float]
    to_acknowledgment: Mapping[str, float]
    to_consumer: Mapping[str, float]
    failures: tuple[str, ...]
    run_folder: str

    field_help: ClassVar[Mapping[str, str]] = {
        "load": "what was wanted: service, queue_name, producers, consumers, size_bytes, per_second, duration_s, "
        "warm_up_s, window, persistent",
        "counts": "samples, with the warm-up: written, accepted, rejected, unanswered, received, redelivered, missing "
        "(accepted and not received), overdue (due and never written)",
        "rates": "without the warm-up: written_per_second, received_per_second, received_megabytes_per_second",
        "to_acknowledgment": "latency from the instant at which a sample was due to its acknowledgment by the queue",
        "to_consumer": "latency from the instant at which a sample was due to its consumer",
        **dict.fromkeys(LATENCIES, "microseconds; of each of the two latencies"),
        "failures": "what of --min-rate and --max-p99 does not hold",
        "run_folder": "the recording, with --record",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if a required rate or latency was not reached, else DONE."""
        return ExitStatus.NO if self.failures else ExitStatus.DONE

    def rows(self) -> list[Row]:
        """Return one flat row."""
        row: dict[str, Plain] = {**self.load, **self.counts, **self.rates}
        for name, latencies in (("to_acknowledgment", self.to_acknowledgment), ("to_consumer", self.to_consumer)):
            row |= {f"{name}_{each}": value for each, value in latencies.items()}
        return [{**row, "failures": "; ".join(self.failures), "run_folder": self.run_folder}]

    def blocks(self) -> list[Block]:
        """Return the load, the rates, and the latencies."""
        load, counts, rates = self.load, self.counts, self.rates
        wanted = f"{load['per_second']:g}/s" if load["per_second"] else "as fast as possible"
        blocks: list[Block] = [
            TextBlock(
                f"{_counted(load, 'producer')}, {_counted(load, 'consumer')}, {load['size_bytes']} octets, {wanted}, "
                f"{load['duration_s']:g} s after {load['warm_up_s']:g} s of warm-up, "
                f"{'persistent' if load['persistent'] else 'volatile'}, on {load['queue_name']}"
            ),
            TextBlock(
                f"{rates['received_per_second']:,.0f} samples/s received "
                f"({rates['received_megabytes_per_second']:,.1f} MB/s), {rates['written_per_second']:,.0f}/s written",
                "good",
            ),
        ]
        columns = [Column("latency", "Latency from when it was due (µs)")]
        columns += [Column(name, name.removesuffix("_us"), "right") for name in LATENCIES]
        rows: list[Row] = [
            {"latency": "to the queue's acknowledgment", **self.to_acknowledgment},
            {"latency": "to the consumer", **self.to_consumer},
        ]
        blocks.append(TableBlock(columns, rows))
        odd = {name: counts[name] for name in ("rejected", "unanswered", "redelivered", "missing", "overdue")}
        if any(odd.values()):
            blocks.append(TextBlock(", ".join(f"{count:,} {name}" for name, count in odd.items() if count), "bad"))
        if counts["overdue"]:
            blocks.append(TextBlock("The rate was not reached: the latencies are of what was written.", "bad"))
        if not load["per_second"]:
            blocks.append(TextBlock("At full load latencies are those of full windows: give a --rate.", "faint"))
        blocks += [TextBlock(each, "bad") for each in self.failures]
        if self.run_folder:
            blocks.append(TextBlock(f"Recorded in {self.run_folder}: qsctl report {self.run_folder}"))
        return blocks


def _counted(load: Mapping[str, Plain], noun: str) -> str:
    number = load[f"{noun}s"]
    assert isinstance(number, int)
    return counted(number, noun)
