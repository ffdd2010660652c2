"""Recordings as sources of "What if": answered as `qsctl replay` does, and renamed, cut or replaced in the meantime."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import qsctl
from qsctl.web._context import AskedSources
from tests.web.serving import Page, Stream, served

MONDAY = Path(__file__).parents[2] / "fixtures/recordings/monday"
ANSWER = {"page": "p", "sides": [{}], "repetitions": 1, "buckets": 20}
NAMES = {
    "time_in_queue_p99": "wait p99", "time_in_queue_max": "longest wait", "time_to_done_p99": "done p99",
    "high_water_mark": "longest queue", "dead": "dead", "redelivered": "redelivered",
}  # fmt: skip
"""Measures of the page with those of `qsctl replay`."""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    folder = tmp_path / uuid.uuid4().hex  # what was read is remembered by its path
    shutil.copytree(MONDAY, folder)
    return folder


@pytest.fixture
def page(recording: Path) -> Iterator[Page]:
    with served(what_if=AskedSources(recordings=(str(recording),))) as found:
        yield found


def answered(page: Page, source: str) -> Any:
    """Return the last answer, or the refusal with its status."""
    with contextlib.closing(page.connection()) as connection:
        connection.timeout = 600
        headers = {"x-qsctl-token": page.access.token, "content-type": "application/json"}
        connection.request(
            "POST", "/api/what-if/answer", json.dumps({**ANSWER, "source": source}).encode(), headers
        )  # fmt: skip
        response = connection.getresponse()
        if response.status != 200:
            return {"http": response.status, **json.loads(response.read())["error"]}
        stream, last = Stream(response), None
        with contextlib.suppress(EOFError):
            while True:
                event = stream.next()
                if event["kind"] in {"answer", "refused"}:
                    last = event
        return last


def controls(page: Page, source: str) -> Any:
    found = page.post("/api/what-if/controls", {"source": source})
    return {"http": found.status, **found.document.get("error", found.document)}


@pytest.mark.slow
def test_a_recording_is_answered_with_the_figures_of_replay(page: Page, recording: Path, tmp_path: Path) -> None:
    source = f"recording {recording}"
    assert any("consumers" in control["path"] for control in controls(page, source)["controls"])
    shown = {each["queue"]: each for each in answered(page, source)["sides"][0]["queues"]}
    replayed: Any = qsctl.replay(recording, out=tmp_path / "replayed").to_dict()
    figures = {(each["queue"], each["measure"]): each["now"] for each in replayed["measures"]}
    assert shown.keys() == {"Dead", "Orders", "Jobs"}
    for queue, found in shown.items():
        assert found["arrived"] == figures[queue, "arrived"] > 0
        compared = [name for name in NAMES if (queue, NAMES[name]) in figures]
        assert {name: found["measures"][name][0] for name in compared} == {
            name: figures[queue, NAMES[name]] for name in compared
        }
    assert figures["Orders", "redelivered"] > 0


def depth_in_log(folder: Path, queue: str, horizon_ns: int, instants: int) -> list[int]:
    """Return the depth of a queue at instants of equal distance, from the recorded messages one by one."""
    stays: list[tuple[int, int]] = []
    for row in pq.read_table(folder / "messages").to_pylist():
        if row["queue"] == queue and row["enter_ns"] is not None:
            end = row["wait_ns"] if row["acknowledge_ns"] is None else row["acknowledge_ns"]
            stayed = horizon_ns if end is None or row["outcome"] == "held" else end
            stays.append((row["enqueued_ns"] + row["enter_ns"], row["enqueued_ns"] + stayed))
    times = [at * horizon_ns / instants for at in range(instants)]
    return [sum(came <= time < left for came, left in stays) for time in times]


def test_the_depth_of_a_recording_is_that_of_its_messages(page: Page, recording: Path) -> None:
    depths = {each["queue"]: each["depth"] for each in answered(page, f"recording {recording}")["sides"][0]["queues"]}
    horizon_ns = json.loads((recording / "run.json").read_text())["horizon_ns"]
    for queue in ("Orders", "Jobs"):
        wanted = depth_in_log(recording, queue, horizon_ns, 20 * 16)
        assert depths[queue]["high"] == [max(wanted[at : at + 16]) for at in range(0, 320, 16)]
        assert depths[queue]["low"] == [min(wanted[at : at + 16]) for at in range(0, 320, 16)]
        assert max(wanted) > 3


def test_a_recording_that_is_renamed_is_missed_and_found_again(page: Page, recording: Path) -> None:
    source = f"recording {recording}"
    assert controls(page, source)["http"] == 200
    away = recording.rename(recording.with_name("elsewhere"))
    for refused in (controls(page, source), answered(page, source)):
        assert refused["http"] == 404
        assert str(recording) in refused["message"]
    away.rename(recording)
    assert controls(page, source)["http"] == 200


def cut_run_file(folder: Path) -> None:
    file = folder / "run.json"
    file.write_bytes(file.read_bytes()[:200])


def another_format(folder: Path) -> None:
    file = folder / "run.json"
    file.write_text(file.read_text().replace('"format": 3', '"format": 999'))


def cut_arrivals(folder: Path) -> None:
    (file,) = (folder / "arrivals").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:1000])


def no_arrivals(folder: Path) -> None:
    shutil.rmtree(folder / "arrivals")


def nothing_in_it(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("broken", [cut_run_file, another_format, cut_arrivals, no_arrivals, nothing_in_it])
def test_a_recording_that_cannot_be_read_is_explained_and_costs_only_itself(
    page: Page, recording: Path, broken: Callable[[Path], None]
) -> None:
    source = f"recording {recording}"
    broken(recording)
    for refused in (controls(page, source), answered(page, source)):
        assert (refused["http"], refused["status"]) in {(400, 3), (404, 4), (500, 9)}, refused
        assert str(recording) in refused["message"]
        assert refused["remedy"]
    shutil.rmtree(recording)
    shutil.copytree(MONDAY, recording)
    assert controls(page, source)["http"] == 200
    assert page.post("/api/what-if/controls", {"source": "burst"}).status == 200
