"""Report pages from the JSON output of `qsctl compare` and `qsctl size`."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, TypeAlias

from qsctl.errors import InvalidInput, NotFound
from qsctl.eventlog.location import Location
from qsctl.report._charts import Picture, difference_chart, heat_chart, line_chart, picture
from qsctl.report._words import count_text, measure_text, percent_text
from qsctl.report.page import Page, PageTable
from qsctl.sim.sweep import Point

HEADLINES: Final = ("loss_ratio", "time_in_queue_p99", "time_in_queue_mean", "throughput", "discards")
_MOST_BARS: Final = 24
_ONLY_POINT: Final = str(Point(()))
"""The name of the only point of a run, in place of a sweep's points."""
_SENTENCES: Final = re.compile(r"(?<=\.) (?=[A-Z])|; (?=B is better)")


def document_page(file: Location) -> Page:
    """Return the page of a file with the JSON of a comparison or a sizing.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not such a document.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{file} does not exist", remedy="Name a run folder, a sweep folder or a JSON file.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} is not a JSON document: {error}", remedy="Make it with -o json.") from None
    try:
        if isinstance(document, dict) and "differences" in document:
            return _comparison_page(document, file)
        if isinstance(document, dict) and "candidates" in document:
            return _sizing_page(document, file)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{file} lacks or mistypes {error}", remedy="Make it again with -o json.") from None
    raise InvalidInput(
        f"{file} is neither a comparison nor a sizing",
        remedy="Make it with `qsctl compare A B -o json` or `qsctl size … -o json`.",
    )


def _comparison_page(document: dict[str, Any], file: Location) -> Page:
    shown = [row for row in document["differences"] if row["measure"] in HEADLINES]
    confidence = document["confidence"]
    bars = []
    for row in shown:
        if row["mean_a"] and row["half_width"] is not None and row["better"] != "same":
            share, half = row["difference"] / abs(row["mean_a"]), row["half_width"] / abs(row["mean_a"])
            place = "" if row["point"] == _ONLY_POINT else f" {row['point']}"
            bars.append(
                {
                    "what": f"{row['queue']} {row['measure']}{place}", "mean": share, "low": share - half,
                    "high": share + half, "verdict": row["better"],
                }
            )  # fmt: skip
    bars.sort(key=lambda bar: -abs(bar["mean"]))
    pictures: list[Picture] = []
    if bars:
        few = bars[:_MOST_BARS]
        pictures.append(
            picture(
                "Differences",
                f"B less A as a share of A, {100 * confidence:g} % intervals; one that crosses zero decides nothing.",
                lambda: difference_chart(few),
                height=60 + 26 * len(few),
            )
        )
    has_points = any(row["point"] != _ONLY_POINT for row in shown)
    rows = [
        [
            *[row["point"]] * has_points, row["queue"], row["measure"], measure_text(row["measure"], row["mean_a"]),
            measure_text(row["measure"], row["mean_b"]), _signed(row), row["better"],
        ]
        for row in shown
    ]  # fmt: skip
    paired = all(row["paired"] for row in shown)
    return Page(
        title="Comparison of A and B",
        subtitle=f"A is {document['a']}, B is {document['b']}",
        good=True,
        verdict=[f"{part.removesuffix('.')}." for part in _SENTENCES.split(document["sentence"])],
        pictures=pictures,
        tables=[
            PageTable(
                "Measures",
                [*["Point"] * has_points, "Queue", "Measure", "A", "B", "B − A", "Better"],
                rows,
                frozenset(range(2 + has_points, 5 + has_points)),
                "Differences of shares are in percentage points." * any("%" in row[-2] for row in rows),
            )
        ],
        facts={
            "A": document["a"],
            "B": document["b"],
            "Confidence": f"{100 * confidence:g} %",
            "Replications": "paired by common random numbers" if paired else "not paired",
        },
        reproduce=f"qsctl compare {document['a']} {document['b']} --confidence {confidence} -o json > {file.name}",
        configuration="",
    )


def _signed(row: dict[str, Any]) -> str:
    sign = "−" if row["difference"] < 0 else "+"
    text = f"{sign}{measure_text(row['measure'], abs(row['difference']))}"
    return text if row["half_width"] is None else f"{text} ± {measure_text(row['measure'], row['half_width'])}"


def _sizing_page(document: dict[str, Any], file: Location) -> Page:
    candidates = document["candidates"]
    answer = document["answer"]
    targets = list(document["targets"])
    paths = list(candidates[0]["settings"]) if candidates else []
    confidence = 100 * document["confidence"]
    verdict = [document["sentence"]]
    rows = [
        [
            *(count_text(row["settings"][path]) for path in paths),
            *(_evidence(each) for each in row["evidence"]),
            count_text(row["replications"]),
            f"{count_text(row['memory_bytes'] / 2**20)} MiB",
            "chosen" if row["chosen"] else "yes" if row["met"] else "no",
        ]
        for row in sorted(candidates, key=lambda row: tuple(row["settings"].values()))
    ]
    return Page(
        title=f"Sizing of {document['scenario']}",
        subtitle=f"{len(candidates)} settings simulated",
        good=answer is not None,
        verdict=verdict,
        pictures=_evidence_pictures(candidates, targets, paths),
        tables=[
            PageTable(
                "Evidence",
                [*paths, *targets, "Replications", "Memory", "Met"],
                rows,
                frozenset(range(len(paths) + len(targets) + 2)),
            )
        ],
        facts={"Scenario": document["scenario"], "Targets": ", ".join(targets), "Confidence": f"{confidence:g} %"},
        reproduce=f"{document['reproduce']} -o json > {file.name}",
        configuration="",
    )


def _evidence(each: dict[str, Any]) -> str:
    if each["basis"] == "share":
        return f"{each['violating_runs']} of {each['runs']} runs violate"
    measure = each["target"].partition("(")[0]
    text = measure_text(measure, each["mean"])
    return text if each["half_width"] is None else f"{text} ± {measure_text(measure, each['half_width'])}"


def _evidence_pictures(candidates: list[Any], targets: list[str], paths: list[str]) -> list[Picture]:
    """Return a chart for each target: a curve over one varied setting, a heat map over two; none over more."""
    if len(paths) not in {1, 2}:
        return []
    pictures = []
    for number, target in enumerate(targets):
        found = [(row["settings"], _mean_and_half(row["evidence"][number])) for row in candidates]
        seen = [(settings, mean, half) for settings, (mean, half) in found if mean is not None and not math.isnan(mean)]
        seen.sort(key=lambda each: tuple(each[0][path] for path in paths))
        if not seen:
            continue
        is_share = candidates[0]["evidence"][number]["basis"] == "share"
        if len(paths) == 1:
            pictures.append(_curve(target, seen, paths[0], is_share=is_share))
        else:
            pictures.append(_map(target, seen, paths, is_share=is_share))
    return pictures


_Seen: TypeAlias = list[tuple[dict[str, Any], float, float]]
"""For each candidate the settings, the mean, and the half width of its interval."""


def _mean_and_half(evidence: dict[str, Any]) -> tuple[float | None, float]:
    if evidence["basis"] == "share":
        return (evidence["violating_runs"] / evidence["runs"] if evidence["runs"] else None), 0.0
    return evidence["mean"], evidence["half_width"] or 0.0


def _curve(target: str, seen: _Seen, path: str, *, is_share: bool) -> Picture:
    scale = 1e6 if target.startswith("time_") and not is_share else 1.0
    points = [
        {
            "x": str(settings[path]), "queue": "runs that violate it" if is_share else "mean", "mean": mean / scale,
            "low": max(0.0, mean - half) / scale, "high": (mean + half) / scale,
        }
        for settings, mean, half in seen
    ]  # fmt: skip
    caption = "The share of the runs of each setting that violated it." if is_share else _CAPTION
    unit = "share of runs" if is_share else "ms" if scale > 1 else "value"
    return picture(target, caption, lambda: line_chart(points, path, unit))


def _map(target: str, seen: _Seen, paths: list[str], *, is_share: bool) -> Picture:
    measure = target.partition("(")[0]
    cells = [
        {
            "x": str(settings[paths[0]]), "y": str(settings[paths[1]]), "value": mean,
            "label": percent_text(mean) if is_share else measure_text(measure, mean),
        }
        for settings, mean, _ in seen
    ]  # fmt: skip
    caption = "The share of the runs of each pair of settings that violated it." if is_share else _MAP_CAPTION
    return picture(target, caption, lambda: heat_chart(cells, paths[0], paths[1], measure))


_CAPTION: Final = "What each simulated setting gave, with its interval."
_MAP_CAPTION: Final = "What each simulated pair of settings gave: the mean."
