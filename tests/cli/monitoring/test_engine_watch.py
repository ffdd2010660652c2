"""`check`, `show`, `metrics`, `wait` and `top` of an integration engine, by its database and by listings of a timer."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from qsctl.cli.engine.looks import LookOptions
from qsctl.cli.monitoring._check_engine import ENGINE_MEASURES
from qsctl.cli.top._display import Display
from qsctl.cli.top._screen import screen
from qsctl.cli.top.engine import EngineSource
from qsctl.core.integration.database import stored
from qsctl.core.integration.records import STREAM, CopyRemovalCause, CopyRemoved, Started
from qsctl.sim.engine.recovery_store import RecoveryStore
from tests.cli.monitoring.watched import message, run, site, timer

SECOND_NS = 10**9


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return site(Path("site.recovery"))


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ([], 2, "CRITICAL: lab 11 outbound post-TPS: queue_messages is 10, allowed is 5"),
        (["--state", "5"], 0, "OK: p_xlate 5 pre-translation: queue_messages is 1"),
        (["--thread", "la?", "-m", "oldest_age_s"], 2, "CRITICAL: lab 11 outbound post-TPS: oldest_age_s is 59"),
        (["-m", "recovery_messages"], 2, "CRITICAL: recovery database: recovery_messages is 11"),
        (["-m", "error_messages"], 0, "OK: error database: error_messages is 5"),
        (["-m", "errors_by_number", "-s", "400-499"], 0, "OK: 405 too many retries: errors_by_number is 2"),
        (["-m", "errors_by_number", "-s", "500"], 0, "OK: errors, state 500: errors_by_number is 0"),
        (["-m", "last_receive_s", "--thread", "orders"], 2, "CRITICAL: orders: last_receive_s is 49"),
        (["--thread", "rad"], 0, "OK: thread rad: queue_messages is 0, and no message of it was seen"),
        (["-m", "growth_per_min"], 3, "UNKNOWN: a rate needs two listings"),
        (["-m", "last_receive_s", "--thread", "rad"], 3, "UNKNOWN: no message that came in by thread rad is known"),
        (["-m", "listing_age_s"], 3, "UNKNOWN: a database has no listing whose age can be checked"),
        (["-m", "depth"], 3, "UNKNOWN: there is no measure 'depth'"),
        (["-s", "x"], 3, "UNKNOWN: 'x' is not a list of states"),
    ],
)  # fmt: skip
def test_a_database_is_checked(database: Path, options: list[str], status: int, text: str) -> None:
    done = run("check", "engine", database, "-c", "5", *options)
    assert (done.exit_code, done.stdout[: len(text)]) == (status, text)


def test_listings_of_a_timer_are_checked_with_their_rates(tmp_path: Path) -> None:
    folder = timer(tmp_path / "dumps", [300, 250, 200])
    done = run("check", "engine", folder, "-w", "100")
    assert done.stdout.startswith(
        "WARNING: lab 11 outbound post-TPS: queue_messages is 200, empty at 12:06 at this rate, allowed is 100 |"
    )
    for measure, value in (("growth_per_min", -50), ("left_per_min", 50), ("arrived_per_min", 0)):
        rows = json.loads(run("check", "engine", folder, "-m", measure, "-w", "~:0", "-o", "json").stdout)["values"]
        assert rows == [{"label": "lab 11 outbound post-TPS", "value": value}]
    done = run("check", "engine", folder, "-w", "500", "--max-age", "10min")
    assert (done.exit_code, "old, allowed is 10min" in done.stdout) == (3, True)
    newest = folder / "newest"  # a name without a time: the files' own times count
    newest.write_text("Total: 0 messages\n", encoding="utf-8")
    for number, file in enumerate(sorted(folder.glob("rec*"))):
        os.utime(file, (1000 + number, 1000 + number))
    assert run("check", "engine", folder, "-w", "500", "--max-age", "10min").exit_code == 0


def test_every_measure_of_a_timer_s_listings_is_a_number(tmp_path: Path) -> None:
    folder = timer(tmp_path / "dumps", [3, 2])
    for measure in ENGINE_MEASURES:
        assert run("check", "engine", folder, "-m", measure, "-w", "~:").exit_code == 0, measure


def test_a_damaged_database_is_critical_and_shown_as_far_as_it_goes(database: Path) -> None:
    octets = bytearray(database.read_bytes())
    octets[octets.find(b"p_xlate")] ^= 1
    database.write_bytes(octets)
    done = run("check", "engine", database, "-w", "100")
    assert (done.exit_code, "is damaged in" in done.stdout) == (2, True)
    assert run("show", "engine", database).exit_code == 9


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"\0" * 5000, b"hello\n"])
def test_what_is_neither_database_nor_listing_is_unknown(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert run("check", "engine", path, "-w", "1").exit_code == 3
    assert run("show", "engine", path).exit_code in {1, 9}
    assert run("show", "engine", path, path).exit_code in {1, 2, 9}


def test_show_has_queues_rates_errors_and_last_messages(database: Path, tmp_path: Path) -> None:
    found = json.loads(run("show", "engine", database, "-o", "json").stdout)
    assert (found["recovery_messages"], found["error_messages"]) == (11, 5)
    assert [(each["state"], each["messages"]) for each in found["errors"]] == [(303, 3), (405, 2)]
    assert [(each["thread"], each["messages"]) for each in found["queues"]] == [("lab", 10), ("p_xlate", 1)]
    assert {each["thread"]: each["last_receive_age_s"] for each in found["threads"]} == {"adt": 44.0, "orders": 49.0}
    done = run("show", "engine", timer(tmp_path / "dumps", [300, 250]))
    assert [line.split() for line in done.stdout.splitlines()[4:5]] == [
        ["lab", "11", "outbound", "post-TPS", "250", "00:01:00", "0.0", "50", "-50", "12:06"]
    ]


def test_metrics_are_prometheus_s_and_written_in_one_step(database: Path, tmp_path: Path) -> None:
    out = tmp_path / "engine.prom"
    out.write_text("before", encoding="utf-8")
    assert run("metrics", "engine", database, "--out", out).exit_code == 0
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(out.read_text(encoding="utf-8"))
        for sample in family.samples
    }
    assert samples["qsctl_engine_recovery_messages",] == 11
    assert samples["qsctl_engine_queue_messages", "outbound post-TPS", "11", "lab"] == 10
    assert samples["qsctl_engine_errors", "too many retries", "405"] == 2
    assert samples["qsctl_engine_look_timestamp_seconds",] == 60
    assert run("show", "engine", database, "-o", "prometheus").stdout.rstrip() == out.read_text().rstrip()
    assert [each.name for each in tmp_path.iterdir() if "engine.prom" in each.name] == ["engine.prom"]
    assert run("metrics", "engine", database, "--out", tmp_path / "no" / "x").exit_code == 2


def test_wait_ends_when_the_backlog_is_gone(database: Path) -> None:
    short = ["--timeout", "100ms", "--interval", "20ms"]
    late = run("wait", "lab", "--engine", database, "--empty", *short)
    assert (late.exit_code, "queue_messages of lab is 10" in late.stderr) == (8, True)
    assert run("wait", "rad*", "--engine", database, "--empty", *short).exit_code == 0
    done = run("wait", "--engine", database, "--until", "error_messages>=5", "--until", "oldest_age_s<60", *short)
    assert done.exit_code == 0
    assert run("wait", "--engine", "later.recovery", *short).exit_code == 8
    assert run("wait", "--engine", database, "--until", "depth=0", *short).exit_code == 2
    assert run("wait").exit_code == 2


def test_top_shows_rates_from_one_look_at_a_database_to_the_next(database: Path) -> None:
    source = EngineSource([database], LookOptions())
    source.look()
    store = RecoveryStore(database)
    removed = [CopyRemoved(STREAM, number, CopyRemovalCause.DELIVERED) for number in (1, 2, 3, 4)]
    store.append([*removed, stored(message(17, serial=17)), Started(STREAM, 18, 1, 62 * SECOND_NS)])
    store.close()
    look = source.look()
    rows = {row["name"]: row for row in look.rows}
    lab = rows["lab 11 outbound post-TPS"]
    assert (lab["depth"], lab["in_per_s"], lab["out_per_s"], lab["empty"]) == (7, 0.5, 2.0, "00:01")
    assert "errors 5 (3 of 303, 2 of 405)" in look.summary
    inside = source.look("lab 11 outbound post-TPS")
    assert [row["name"] for row in inside.rows][:2] == ["[0.1.5]", "[0.1.6]"]
    text = "\n".join(line.text for line in screen(source.title(), look, Display(), 100, 20))
    assert "lab 11 outbound post-TPS" in text
    assert "1970-01-01 00:01:02" in text


def test_top_takes_one_source(database: Path) -> None:
    done = run("top", "--engine", database, "--broker", "x")
    assert (done.exit_code, "both given" in done.stderr) == (2, True)


def test_a_database_is_looked_at_by_any_name_and_while_an_engine_has_it(database: Path, tmp_path: Path) -> None:
    whole = run("show", "engine", database, "-o", "json").stdout
    store = RecoveryStore(database)
    assert json.loads(run("show", "engine", database, "-o", "json").stdout)["recovery_messages"] == 11
    store.append([stored(message(20, serial=20))])
    assert json.loads(run("show", "engine", database, "-o", "json").stdout)["recovery_messages"] == 12
    copy = tmp_path / "copy of it"
    for end in ("", "-wal"):
        shutil.copy(f"{database}{end}", f"{copy}{end}")
    assert json.loads(run("show", "engine", copy, "-o", "json").stdout)["recovery_messages"] == 12
    store.append([CopyRemoved(STREAM, 20, CopyRemovalCause.DELIVERED)])
    store.close()
    (tmp_path / "elsewhere").mkdir()
    moved = database.rename(tmp_path / "elsewhere" / "other.name")
    assert run("show", "engine", moved, "-o", "json").stdout == whole.replace("site.recovery", str(moved))
    copy.with_name(f"{copy.name}-wal").unlink()
    alone = run("check", "engine", copy, "-w", "1000")
    assert (alone.exit_code, "its log" in alone.stdout) == (2, True)
