"""Files of metadata and of data: what `dump` writes `resend` reads, and what is wrong in one is named by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.cli.engine._message_files import Framing, joined_messages, metadata_lines, read_metadata, split_messages
from qsctl.core.integration.database import stored
from qsctl.core.integration.message import Message, MessageId, State
from qsctl.core.integration.records import STREAM, Started
from qsctl.errors import InvalidInput
from qsctl.sim.engine.recovery_store import RecoveryStore, read_recovery_database
from tests.cli.engine.stored import message, run

ALLOWED: Any = st.text(st.characters(exclude_categories=("Cs",), max_codepoint=0xFFFF), max_size=30)


def failed(number: int, **more: object) -> Message:
    return message(number, State.OUTBOUND_POST_TPS, error=405, error_text="x", **more)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("ward.recovery")
    store = RecoveryStore(path)
    store.append([Started(STREAM, 1, 1), *(stored(failed(number)) for number in range(1, 6))])
    store.close()
    return path


def sent(database: Path) -> list[Message]:
    return [each for each in read_recovery_database(database).database.messages() if each.mid.start == 2]


def test_what_dump_writes_and_an_editor_changes_is_what_is_sent(database: Path) -> None:
    files = ["--write-meta", "x.meta", "--write-messages", "x.txt"]
    done = run("dump", database, "-e", "-m", "2:4", *files)
    assert (done.exit_code, done.stderr.count("3 messages")) == (0, 2)
    assert Path("x.txt").read_bytes() == b"MSH|2\r\nMSH|3\r\nMSH|4\r\n"
    meta = Path("x.meta").read_text(encoding="utf-8").splitlines()
    assert meta[0].startswith("{{MID {{DOMAIN 0} {HUB 1} {NUM 2}}} {SRCMID")
    edited = [
        meta[2].replace("{PRIORITY 5120}", "{PRIORITY 6000}"),
        meta[0].replace("DESTCONN lab_out", "DESTCONN rad_out", 1),
    ]
    Path("x.meta").write_text("\n".join(edited), encoding="utf-8")
    Path("x.txt").write_bytes(b"MSH|four\r\nMSH|two\r\n")
    options = ["--meta", "x.meta", "--messages", "x.txt", "--into", "ob_pre_tps"]
    planned = json.loads(run("resend", database, *options, "--dry-run", "-o", "json").stdout)
    assert [(row["mid"], row["thread"], row["priority"]) for row in planned] == [
        ("0.1.4", "lab_out", 6000), ("0.1.2", "rad_out", 5120),
    ]  # fmt: skip
    assert run("resend", database, *options, "--yes").exit_code == 0
    assert [(each.source_mid.number, each.payload, each.owner) for each in sent(database)] == [
        (4, b"MSH|four\r", "lab_out"), (2, b"MSH|two\r", "rad_out"),
    ]  # fmt: skip


def test_options_count_before_the_file_and_the_file_before_the_message(database: Path) -> None:
    Path("x.meta").write_text("{{MID 0.1.1} {PRIORITY 7} {USERDATA {a b}}}\n", encoding="utf-8")
    assert (
        run("resend", database, "--meta", "x.meta", "--into", "ob_post_tps", "--priority", "9", "--yes").exit_code == 0
    )
    (one,) = sent(database)
    assert (one.priority, one.user_data, one.destination) == (9, "a b", "lab_out")


@pytest.mark.parametrize(
    ("meta", "options", "status", "words"),
    [
        ("{{MID 0.1.9}}", [], 4, "x.meta:1: there is no message [0.1.9]"),
        ("{{MID 0.1.1}}\n{{MID {{DOMAIN 0} {HUB 1} {NUM 1}}}}", [], 1, "x.meta:2: error: message [0.1.1] is in line 1"),
        ("{{MID 0.1}}\n{{PRIORITY 3}}\n{{MID 0.1.1} {PRIORITY x}}", [], 1, "3 errors"),
        ("{{MID 0.1.1} {PRIORITY 70000}}", [], 1, "0 to 65535"),
        ("{{MID 0.1.1}", [], 1, "not closed"),
        ("", [], 1, "no message in it"),
        ("{{MID 0.1.1} {DESTCONN rad_out}}", [], 2, "--into ob_pre_tps"),
        ("{{MID 0.1.1}}", ["-m", "0.1.2"], 2, "both given"),
        ("{{MID 0.1.1}}", ["--messages", "two.txt"], 1, "two.txt has 2 messages, and 1 are named"),
        ("{{MID 0.1.1}}", ["--messages", "two.txt", "--framing", "len10"], 1, "offset 0"),
        ("{{MID 0.1.1}}", ["--messages", "two.txt", "--data", "two.txt"], 2, "both given"),
        ("{{MID 0.1.1}}", ["--messages", "none.txt"], 4, "no file"),
    ],
)
def test_a_wrong_file_sends_nothing(database: Path, meta: str, options: list[str], status: int, words: str) -> None:
    Path("x.meta").write_text(meta, encoding="utf-8")
    Path("two.txt").write_bytes(b"a\nb\n")
    before = database.read_bytes()
    done = run("resend", database, "--meta", "x.meta", *options, "--yes")
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr
    assert database.read_bytes() == before


def test_dump_writes_over_nothing(database: Path) -> None:
    Path("there").write_text("x", encoding="utf-8")
    assert run("dump", database, "-e", "--write-meta", "there").exit_code == 2
    assert run("dump", database, "-e", "--write-messages", "new", "--framing", "eof").exit_code == 1
    assert not Path("new").exists()
    assert run("dump", "--file", "there", "--write-meta", "new").exit_code == 2


@given(ALLOWED, ALLOWED, ALLOWED)
def test_any_metadata_is_read_as_it_was_written(destination: str, user_data: str, transaction: str) -> None:
    written = failed(3, destination=destination, user_data=user_data, transaction_id=transaction)
    (line,) = metadata_lines([written])
    assert line.isprintable()
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"qsctl-meta-{hash(line) & 0xFFFF}"
    path.write_text(f"{line}\n", encoding="utf-8")
    try:
        (found,) = read_metadata(path)
    finally:
        path.unlink()
    assert found.mid == MessageId(0, 1, 3)
    assert (found.edit.destination or "", found.edit.user_data, found.edit.transaction_id) == (
        destination.strip(), user_data.strip(), transaction.strip(),
    )  # fmt: skip


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=5), st.sampled_from(Framing))
def test_any_data_is_read_as_it_was_written(data: list[bytes], framing: Framing) -> None:
    messages = [failed(number, payload=each) for number, each in enumerate(data, 1)]
    try:
        joined = joined_messages(messages, framing)
    except InvalidInput:
        assert (framing is Framing.WHOLE_FILE and len(data) > 1) or any(b"\n" in each for each in data)
        return
    assert split_messages(joined, framing, "x") == data
