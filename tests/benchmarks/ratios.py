"""Keep the ratios that benchmarks measure against their peers, and compare them with those of the last release.

A rate means nothing on another machine, a ratio of two rates of one run does. With `QSCTL_RATIOS=FILE` each benchmark
appends its own to the file, a JSON object a line, and

    python -m tests.benchmarks.ratios FILE            compare; exit status 1 where one is worse by more than a fifth
    python -m tests.benchmarks.ratios FILE --keep     make them the kept ones, in ratios.json

What was not measured, since its peer is not installed, is listed and not an error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median

FILE = os.environ.get("QSCTL_RATIOS")
"""Read here: in a test the environment has no variable of qsctl."""

KEPT = Path(__file__).with_name("ratios.json")
TOLERANCE = 1.2
"""How many times worse a ratio may be: a shared machine moves most of them by a tenth."""


def keep_ratio(name: str, ratio: float, higher_is_better: bool = True) -> None:
    """Append a ratio to the file of `QSCTL_RATIOS`, where that is set.

    Args:
        name: what is compared with what, unique among all benchmarks.
        ratio: ours to theirs, of the same run.
        higher_is_better: as for rates; false for times and costs.
    """
    if FILE:
        line = json.dumps({"name": name, "ratio": round(ratio, 4), "higher_is_better": higher_is_better})
        with Path(FILE).open("a", encoding="utf-8") as out:
            out.write(line + "\n")


def measured(file: Path) -> dict[str, dict[str, float | bool]]:
    """Return the median of what was measured for each name."""
    found: dict[str, list[float]] = {}
    directions: dict[str, bool] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["name"], []).append(row["ratio"])
        directions[row["name"]] = row["higher_is_better"]
    return {name: {"ratio": median(each), "higher_is_better": directions[name]} for name, each in sorted(found.items())}


def times_worse(kept: dict[str, float | bool], ratio: float) -> float:
    """Return how many times worse than the kept one a ratio is; below 1 it is better."""
    return kept["ratio"] / ratio if kept["higher_is_better"] else ratio / kept["ratio"]


def main(arguments: list[str] | None = None) -> int:
    """Compare or keep, and return the exit status."""
    parser = argparse.ArgumentParser(description="Compare the ratios of a run of the benchmarks with the kept ones.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--keep", action="store_true", help="make them the kept ones")
    parser.add_argument("--kept", type=Path, default=KEPT, help="file of the kept ones")
    options = parser.parse_args(arguments)
    found = measured(options.file)
    kept = json.loads(options.kept.read_text(encoding="utf-8")) if options.kept.exists() else {}
    if options.keep:
        options.kept.write_text(json.dumps(kept | found, indent=1) + "\n", encoding="utf-8")
        return 0
    worse = []
    for name in sorted(kept | found):
        before, now = (each[name]["ratio"] if name in each else None for each in (kept, found))
        if before is None or now is None:
            verdict = "new" if before is None else "not measured"
        else:
            times = times_worse(kept[name], now)
            verdict = f"{times:.2f} times worse" if times > 1 else "as good"
            if times > TOLERANCE:
                worse.append(name)
        sys.stdout.write(f"{name}: {before or '-'} -> {now or '-'}, {verdict}\n")
    if worse:
        sys.stdout.write(f"worse by more than {TOLERANCE - 1:.0%}: {', '.join(worse)}\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
