"""`qsctl engine dump`, `states`, `resend`, `delete`: on a recovery database and on listings, as operators type them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import filelock
import pytest

from qsctl.cli.engine import _dump as engine_dump
from qsctl.core.integration.database import stored
from qsctl.core.integration.message import Flag, Message, MessageId, State
from qsctl.core.integration.records import STREAM, Started
from qsctl.sim.engine.recovery_store import LOCK_SUFFIX, RecoveryStore, read_recovery_database
from tests.cli.engine.stored import message, run

FIXTURES = Path(__file__).parents[3] / "fixtures" / "dumps"


MESSAGES = [
    message(1, State.PRE_TRANSLATION, owner="clinical_xlate"),
    message(2, State.POST_TRANSLATION),
    message(3, State.OUTBOUND_POST_TPS),
    message(4, State.OUTBOUND_POST_TPS, priority=6000),
    message(5, State.IN_TRANSLATION, error=303, error_text="no field PID-3"),
    message(6, State.OUTBOUND_POST_TPS, error=405, error_text="no attempt is left"),
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "ward.recovery"
    store = RecoveryStore(path)
    store.append([Started(STREAM, 1, 1), *map(stored, MESSAGES)])
    store.close()
    return path


def ids(*arguments: object) -> list[str]:
    done = run("dump", *arguments, "-o", "json")
    assert done.exit_code == 0, done.stderr
    return [row["mid"] for row in json.loads(done.stdout)]


def test_dump_lists_the_recovery_database_and_with_errors_the_other(database: Path) -> None:
    assert ids(database) == ids(database, "-r") == ["0.1.1", "0.1.2", "0.1.3", "0.1.4"]
    assert ids(database, "--errors") == ["0.1.5", "0.1.6"]
    listed = run("dump", database, "-e").stdout.splitlines()
    assert listed[6].split() == ["00:00:05", "[0.1.5]", "E", "D", "N", "5120", "303", "6", "adt_in"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--state", "11"], ["0.1.3", "0.1.4"]),
        (["-s", "1-7"], ["0.1.1", "0.1.2"]),
        (["-s", "5,11", "-m", "0.1.1:0.1.3"], ["0.1.1", "0.1.3"]),
        (["-d", "lab*", "--until", "00:00:03"], ["0.1.2", "0.1.3"]),
        (["--since", "1970-01-01T00:00:04"], ["0.1.4"]),
        (["-f", "adt_i?", "-t", "d", "--owner", "clinical_xlate"], ["0.1.1"]),
        (["-t", "R"], []),
        (["-m", "[0.1.2]", "-m", "0.1.4"], ["0.1.2", "0.1.4"]),
        (["-m", "2"], ["0.1.2"]),
        (["-m", "2:3", "-m", "0.1.4"], ["0.1.2", "0.1.3", "0.1.4"]),
    ],
)
def test_filters_choose_messages(database: Path, options: list[str], found: list[str]) -> None:
    assert ids(database, *options) == found


@pytest.mark.parametrize("form", [[], ["-l"], ["-L"], ["-L", "-x"]])
def test_what_dump_prints_dump_reads(database: Path, form: list[str]) -> None:
    text = run("dump", database, *form).stdout
    again = run("dump", "--file", "-", *form, stdin=text.encode())
    assert (again.exit_code, again.stdout) == (0, text)


def test_groups_count_by_state_age_and_thread_with_ages_up_to_now(database: Path) -> None:
    rows = json.loads(run("dump", database, "-g", "state,thread", "--now", "1970-01-01T00:01:04", "-o", "json").stdout)
    assert [(row["state"], row["thread"], row["messages"], row["oldest_age_s"]) for row in rows] == [
        ("5 pre-translation", "clinical_xlate", 1, 63.0),
        ("7 post-translation", "lab_out", 1, 62.0),
        ("11 outbound post-TPS", "lab_out", 2, 61.0),
    ]
    ages = json.loads(run("dump", database, "-g", "age", "--now", "1970-01-01T00:01:02", "-o", "json").stdout)
    assert [(row["age"], row["messages"]) for row in ages] == [("under 1 min", 2), ("1 to 5 min", 2)]


def test_groups_of_a_listing_name_the_thread_of_the_state() -> None:
    done = run("dump", "--file", FIXTURES / "short.txt", "-g", "thread", "-o", "csv")
    assert [line.split(",")[:2] for line in done.stdout.splitlines()[1:]] == [
        ["adt_in", "1"], ["lab_out", "3"], ["translation", "2"],
    ]  # fmt: skip


def test_ages_of_a_listing_without_dates_are_noted() -> None:
    assert "no dates" in run("dump", "--file", FIXTURES / "short.txt", "-g", "age").stderr


def test_a_listing_can_be_in_order_of_time_and_counted(database: Path) -> None:
    listing = FIXTURES / "columns.txt"
    assert run("dump", "--file", listing, "-C").stdout == "3\n"
    assert ids("--file", listing, "--order", "i") == ["0.0.311", "0.0.322", "0.0.331"]


def test_a_message_that_was_outbound_at_instant_0_is_first_by_outbound_time(tmp_path: Path) -> None:
    path = tmp_path / "zero.recovery"
    store = RecoveryStore(path)
    times = {1: 0, 2: 7, 3: 3}
    held = [message(number, State.OUTBOUND_POST_TPS, outbound_at_ns=at, position=at) for number, at in times.items()]
    store.append([Started(STREAM, 1, 1), *map(stored, [*held, message(4, State.PRE_TRANSLATION)])])
    store.close()
    assert ids(path, "-O", "o") == ["0.1.1", "0.1.3", "0.1.2", "0.1.4"]


def test_the_order_of_a_queue_is_by_priority_and_place_behind_what_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "queue.recovery"
    store = RecoveryStore(path)
    waiting = State.OUTBOUND_POST_TPS
    held = [
        message(1, waiting, position=9, outbound_at_ns=1),
        message(2, waiting, position=3, outbound_at_ns=5),
        message(3, waiting, position=7, outbound_at_ns=4, priority=6000),
        message(4, State.PRE_WRITE, position=8, outbound_at_ns=2, priority=100),
        message(5, waiting, position=2, owner="aux_out", destination="aux_out", outbound_at_ns=9),
        message(6, State.POST_TRANSLATION, position=1),
        message(7, State.PRE_TRANSLATION, owner="clinical_xlate"),
    ]
    store.append([Started(STREAM, 1, 1), *map(stored, held)])
    store.close()
    assert ids(path, "-O", "queue") == [f"0.1.{number}" for number in (5, 4, 3, 2, 1, 6, 7)]
    assert ids(path, "-O", "o", "-d", "lab_out") == [f"0.1.{number}" for number in (4, 3, 2, 1, 6)]
    extended = run("dump", path, "-L").stdout.encode()
    again = json.loads(run("dump", "--file", "-", "-O", "queue", "-o", "json", stdin=extended).stdout)
    assert [row["mid"][4:] for row in again] == ["5", "4", "3", "1", "2", "6", "7"]  # of a listing by its times


def test_content_is_searched_plainly_and_by_field(tmp_path: Path) -> None:
    pytest.importorskip("hl7")
    path = tmp_path / "content.recovery"
    data = {
        1: b"MSH|^~\\&|adt\rPID|1||4711^^^WARD||Doe^Jane\r",
        2: b"MSH|^~\\&|adt\rPID|1||4712^^^WARD~4711^^^OLD||Roe^Richard\r",
        3: b"4711 is not in a field\r",
    }
    store = RecoveryStore(path)
    held = [message(number, State.OUTBOUND_POST_TPS, payload=octets) for number, octets in data.items()]
    store.append([Started(STREAM, 1, 1), *map(stored, held)])
    store.close()
    for options, found in (
        (["-c", "4711"], "123"),
        (["-c", "4711", "-c", r"Roe^Richard\x0d"], "2"),
        (["--hl7", "PID-3=4711"], "12"),
        (["--hl7", "PID-3=4711", "--hl7", "PID-5.1=D*"], "1"),
        (["--hl7", "PID-3.4!=OLD"], "1"),
    ):
        assert ids(path, *options) == [f"0.1.{number}" for number in found], options
    noted = run("dump", path, "--hl7", "PID-3=1").stderr
    assert "the data of 1 messages is not HL7 v2: [0.1.3]; -c searches any data" in " ".join(noted.split())
    listing = run("dump", path, "-L").stdout.encode()
    assert run("dump", "--file", "-", "--hl7", "PID-5.2=Jane", "-C", stdin=listing).stdout == "1\n"
    short = run("dump", "--file", FIXTURES / "short.txt", "-c", "x")
    assert (short.exit_code, "extended form" in short.stderr) == (1, True)
    assert "2 messages deleted" in run("delete", path, "--hl7", "PID-3=4711", "--yes").stdout


def test_a_message_whose_data_is_damaged_is_in_the_error_database_as_500(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE payload SET body = x'00' WHERE position IN (3, 5)")
        connection.commit()
    done = run("dump", database, "-e", "-o", "json")
    rows = {row["mid"]: (row["state"], row["error_text"]) for row in json.loads(done.stdout)}
    assert done.exit_code == 9
    assert "kept without it" in " ".join(done.stderr.split())
    assert rows["0.1.3"] == (500, "its data is gone or damaged in the database")
    assert rows["0.1.5"] == (500, f"{rows['0.1.3'][1]}; it had failed with 303: no field PID-3")
    assert rows["0.1.6"][0] == 405
    assert [row["mid"] for row in json.loads(run("dump", database, "-o", "json").stdout)] == ["0.1.1", "0.1.2", "0.1.4"]
    RecoveryStore(database).close()  # as the next run of the engine does: from here on the file is whole
    assert ids(database, "-e", "-s", "500") == ["0.1.3", "0.1.5"]


def test_a_short_id_of_several_messages_lists_them_and_changes_none(tmp_path: Path) -> None:
    path = tmp_path / "two.recovery"
    store = RecoveryStore(path)
    again = message(8, State.POST_TRANSLATION, mid=MessageId(0, 2, 3))
    store.append([Started(STREAM, 1, 2), *map(stored, [message(3, State.POST_TRANSLATION), again])])
    store.close()
    assert ids(path, "-m", "3") == ["0.1.3", "0.2.3"]
    done = run("delete", path, "-m", "3", "--yes")
    assert (done.exit_code, "[0.1.3], [0.2.3]" in done.stderr) == (2, True)
    assert run("delete", path, "-m", "0.2.3", "--yes").exit_code == 0
    assert ids(path) == ["0.1.3"]


def test_too_many_messages_to_list_are_refused_and_can_be_counted(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_dump, "MOST_LISTED", 3)
    done = run("dump", database)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--group-by" in done.stderr
    assert run("dump", database, "-C").stdout == "4\n"
    assert run("dump", database, "-g", "state").exit_code == 0


def test_a_listing_that_is_not_understood_prints_nothing_but_its_problems() -> None:
    done = run("dump", "--file", FIXTURES / "cut.txt", "-C")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "6 errors" in done.stderr
    assert "cut.txt:5: error" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["dump"], 2, "--file"),
        (["dump", "DATABASE", "--file", "x"], 2, "both given"),
        (["dump", "DATABASE", "-r", "-e"], 2, "both given"),
        (["dump", "--file", "x", "-e"], 2, "--state"),
        (["dump", "missing.recovery"], 4, "no recovery database"),
        (["dump", "--file", "missing.txt"], 4, "no file"),
        (["dump", "DATABASE", "-g", "colour"], 2, "state, age, thread"),
        (["dump", "DATABASE", "-s", "x"], 2, "qsctl engine states"),
        (["dump", "DATABASE", "-s", "9-3"], 2, "7,10-11"),
        (["dump", "DATABASE", "-m", "7."], 2, "0.1.42"),
        (["dump", "DATABASE", "-m", "9:7"], 2, "7:9"),
        (["dump", "DATABASE", "-m", "0.1.9:0.1.2"], 2, "ends before it begins"),
        (["dump", "DATABASE", "-m", "0.1.9:0.2.9"], 2, "different x.y"),
        (["dump", "DATABASE", "-t", "X"], 2, "D (data)"),
        (["dump", "DATABASE", "--since", "noon"], 2, "--since"),
        (["dump", "DATABASE", "--since", "10:00", "--until", "09:00"], 2, "before"),
        (["dump", "DATABASE", "--date-order", "ymd"], 2, "mdy"),
        (["dump", "DATABASE", "--encoding", "klingon"], 2, "klingon"),
        (["dump", "DATABASE", "-O", "x"], 2, "inbound"),
        (["dump", "DATABASE", "-e", "-O", "queue"], 2, "no queues"),
        (["dump", "DATABASE", "-c", ""], 2, "--content"),
        (["dump", "DATABASE", "--hl7", "PID=3"], 2, "PID-3=4711"),
        (["states", "9999"], 4, "9999"),
        (["delete", "DATABASE"], 2, "--all"),
        (["delete", "DATABASE", "--all", "-s", "7"], 2, "both given"),
        (["delete", "DATABASE", "-s", "7"], 2, "--yes"),
        (["delete", "DATABASE", "-s", "9", "--yes"], 4, "matches"),
        (["delete", "missing.recovery", "--all", "--yes"], 4, "no recovery database"),
        (["resend", "DATABASE"], 2, "--all"),
        (["resend", "DATABASE", "-s", "303"], 2, "--yes"),
        (["resend", "DATABASE", "-s", "303", "--into", "x", "--yes"], 2, "ob_pre_tps"),
        (["resend", "DATABASE", "-m", "0.1.2", "--yes"], 7, "on its way"),
        (["resend", "DATABASE", "-m", "0.1.5", "--into", "ob_pre_tps", "--yes"], 7, "no destination"),
        (["resend", "DATABASE", "--all", "--data", "x", "--yes"], 2, "one message"),
        (["resend", "DATABASE", "-s", "100", "--yes"], 4, "matches"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_command_changes_nothing_and_names_the_remedy(
    database: Path, arguments: list[str], status: int, word: str
) -> None:
    before = database.read_bytes()
    done = run(*[str(database) if each == "DATABASE" else each for each in arguments])
    assert (done.exit_code, done.stdout) == (status, "")
    assert word in done.stderr
    assert database.read_bytes() == before


def test_delete_takes_messages_out_of_one_database(database: Path) -> None:
    looked = run("delete", database, "-s", "11", "--dry-run", "-o", "json")
    assert [(row["mid"], row["stop_first"], row["deleted"]) for row in json.loads(looked.stdout)] == [
        ("0.1.3", "thread lab_out", False),
        ("0.1.4", "thread lab_out", False),
    ]
    assert ids(database, "-s", "11") == ["0.1.3", "0.1.4"]
    assert "2 messages deleted" in run("delete", database, "-s", "11", "--yes").stdout
    assert ids(database) == ["0.1.1", "0.1.2"]
    assert run("delete", database, "-e", "--all", "--yes").exit_code == 0
    assert (ids(database), ids(database, "-e")) == (["0.1.1", "0.1.2"], [])


def test_delete_asks_on_a_terminal_and_takes_no_for_an_answer(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qsctl.cli.engine import _change as engine_change

    monkeypatch.setattr(engine_change, "_is_terminal", lambda: True)
    refused = run("delete", database, "-m", "0.1.3", stdin=b"n\n")
    assert (refused.exit_code, "Delete 1 message of" in refused.stderr) == (130, True)
    assert len(ids(database)) == 4
    assert run("delete", database, "-m", "0.1.3", stdin=b"y\n").exit_code == 0
    assert ids(database) == ["0.1.1", "0.1.2", "0.1.4"]


def test_a_database_in_use_is_read_unchanged_and_the_safe_order_is_shown(database: Path) -> None:
    with filelock.FileLock(database.with_name(database.name + LOCK_SUFFIX)):
        assert len(ids(database)) == 4
        done = run("delete", database, "--all", "--yes")
        assert (done.exit_code, done.stdout) == (7, "")
        assert "stop process clinical first, then delete 2 messages in state 5 (pre-translation)," in done.stderr
        assert "stop thread lab_out (or its process clinical) first, then delete 2 messages" in done.stderr
        looked = run("delete", database, "-s", "7", "--dry-run")
        assert looked.exit_code == 0
        assert "stop process clinical first" in looked.stdout
        assert run("resend", database, "--all", "--yes").exit_code == 7
    assert len(ids(database)) == 4


def test_resend_gives_a_new_id_keeps_the_source_and_leaves_the_error_database(database: Path) -> None:
    planned = json.loads(run("resend", database, "-s", "405", "--into", "ob_pre_tps", "--dry-run", "-o", "json").stdout)
    done = json.loads(run("resend", database, "-s", "405", "--into", "ob_pre_tps", "--yes", "-o", "json").stdout)
    assert [{**row, "resent": True} for row in planned] == done
    assert (done[0]["mid"], done[0]["new_mid"], done[0]["source_mid"]) == ("0.1.6", "0.2.1", "0.1.6")
    assert ids(database, "-e") == ["0.1.5"]
    content = read_recovery_database(database).database
    (again,) = [each for each in content.messages() if each.mid == MessageId(0, 2, 1)]
    assert (again.state, again.owner, again.payload) == (State.OUTBOUND_PRE_TPS, "lab_out", b"MSH|6\r")


def test_resend_with_corrected_data_sends_that(database: Path, tmp_path: Path) -> None:
    corrected = tmp_path / "corrected.hl7"
    corrected.write_bytes(b"MSH|corrected\r")
    assert run("resend", database, "-m", "0.1.5", "--data", corrected, "--yes").exit_code == 0
    content = read_recovery_database(database).database
    (again,) = [each for each in content.messages() if each.mid.start == 2]
    assert (again.payload, again.source_mid, again.error) == (b"MSH|corrected\r", MessageId(0, 1, 5), 0)
    corrected.write_bytes(b"")
    assert run("resend", database, "-m", "0.1.6", "--data", corrected, "--yes").exit_code == 1
    assert ids(database, "-e") == ["0.1.6"]


def test_a_file_that_is_no_database_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for file in (empty, FIXTURES / "short.txt"):
        for command in (["dump"], ["delete", "--all", "--yes"], ["resend", "--all", "--yes"]):
            done = run(command[0], file, *command[1:])
            assert (done.exit_code, done.stdout) == (9, "")
            assert "not a recovery database" in done.stderr
            assert "--file" in done.stderr


def test_a_damaged_database_is_listed_as_far_as_it_goes_and_not_changed(database: Path) -> None:
    octets = bytearray(database.read_bytes())
    at = octets.find(b"no field PID-3")
    octets[at] ^= 1
    database.write_bytes(octets)
    done = run("dump", database, "-C")
    assert done.exit_code == 9
    assert f"{database}: offset" in " ".join(done.stderr.split())
    assert run("delete", database, "--all", "--yes").exit_code == 9
    assert run("resend", database, "--all", "--dry-run").exit_code == 9
    assert database.read_bytes() == bytes(octets)


def held(database: Path) -> dict[str, Message]:
    content = read_recovery_database(database).database
    return {str(each.mid).strip("[]"): each for each in (*content.messages(), *content.failed())}


def test_resend_edits_priority_destination_and_metadata(database: Path) -> None:
    edits = ["--to", "lab2_out", "--priority", "6000", "--set", "user_data=a=b", "--set", "transaction_id=A01"]
    done = run("resend", database, "-s", "405", "--into", "ob_post_tps", *edits, "--yes", "-o", "json")
    assert [(row["thread"], row["priority"]) for row in json.loads(done.stdout)] == [("lab2_out", 6000)]
    again = held(database)["0.2.1"]
    assert (again.destination, again.owner, again.priority) == ("lab2_out", "lab2_out", 6000)
    assert (again.user_data, again.transaction_id, again.payload) == ("a=b", "A01", b"MSH|6\r")
    assert run("resend", database, "-s", "303", "--set", "source=orders_in", "--yes").exit_code == 0
    assert held(database)["0.3.1"].owner == "orders_in"


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["resend", "DATABASE", "-s", "405", "--to", "x", "--yes"], 2, "ob_pre_tps"),
        (["resend", "DATABASE", "-s", "405", "--set", "priority=3", "--yes"], 2, "transaction_id"),
        (["resend", "DATABASE", "-s", "405", "--set", "source=", "--yes"], 2, "FIELD=VALUE"),
        (["resend", "DATABASE", "-s", "405", "--priority", "70000", "--yes"], 2, "65535"),
        (["move", "DATABASE", "-s", "7"], 2, "--front"),
        (["move", "DATABASE", "--front"], 2, "--all"),
        (["move", "DATABASE", "-s", "7", "--front"], 2, "--yes"),
        (["move", "DATABASE", "-s", "9", "--front", "--yes"], 4, "matches"),
        (["move", "DATABASE", "-s", "7", "--into", "x", "--yes"], 2, "pre_xlt"),
        (["move", "DATABASE", "-s", "7", "--into", "errors", "--yes"], 2, "--error 405"),
        (["move", "DATABASE", "-s", "7", "--into", "ob_pre_tps", "--error", "405", "--yes"], 2, "--into errors"),
        (["move", "DATABASE", "-s", "7", "--into", "errors", "--error", "405", "--front", "--yes"], 2, "no order"),
        (["move", "DATABASE", "-s", "7", "--into", "pre_xlt", "--yes"], 7, "result of a translation"),
        (["move", "DATABASE", "-s", "5", "--into", "ob_pre_tps", "--yes"], 7, "--to"),
        (["move", "DATABASE", "-s", "5", "--to", "lab_out", "--yes"], 7, "not routed yet"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_edit_changes_nothing(database: Path, arguments: list[str], status: int, word: str) -> None:
    test_a_wrong_command_changes_nothing_and_names_the_remedy(database, arguments, status, word)


def test_a_message_that_lost_its_data_is_sent_again_only_with_data(database: Path, tmp_path: Path) -> None:
    store = RecoveryStore(database)
    store.append([stored(message(7, State.OUTBOUND_POST_TPS, error=500, payload=b""))])
    store.close()
    done = run("resend", database, "-s", "500", "--yes")
    assert (done.exit_code, "--data" in done.stderr) == (7, True)
    data = tmp_path / "x"
    data.write_bytes(b"MSH|new")
    assert run("resend", database, "-s", "500", "--data", data, "--yes").exit_code == 0
    assert held(database)["0.2.1"].payload == b"MSH|new"


def test_move_puts_messages_elsewhere_and_names_what_to_stop(database: Path) -> None:
    def moved(*arguments: object) -> list[dict[str, object]]:
        done = run("move", database, *arguments, "-o", "json")
        assert done.exit_code == 0, done.stderr
        rows: list[dict[str, object]] = json.loads(done.stdout)
        return rows

    planned = moved("-s", "7,11", "--to", "lab2_out", "--into", "post_xlt", "--dry-run")
    assert [(row["mid"], row["from_state"], row["stop_first"]) for row in planned] == [
        ("0.1.4", 11, "thread lab_out"), ("0.1.2", 7, "process clinical"), ("0.1.3", 11, "thread lab_out"),
    ]  # fmt: skip
    assert moved("-s", "7,11", "--to", "lab2_out", "--into", "post_xlt", "--yes") == [
        {**row, "moved": True} for row in planned
    ]
    found = held(database)
    assert [(found[mid].state, found[mid].owner) for mid in ("0.1.2", "0.1.3")] == [
        (State.POST_TRANSLATION, "lab2_out")
    ] * 2
    assert found["0.1.4"].position < found["0.1.2"].position < found["0.1.3"].position
    moved("-m", "0.1.3", "--front", "--yes")
    assert ids(database, "-s", "7", "-O", "queue")[0] == "0.1.3"
    assert held(database)["0.1.3"].priority == 5120 + 880  # as high as that of 0.1.4
    moved("-m", "0.1.2", "--into", "errors", "--error", "108", "--yes")
    failed = held(database)["0.1.2"]
    assert (failed.error, failed.error_text) == (108, "moved by an operator from post-translation")
    moved("-s", "5", "--to", "lab_out", "--into", "ob_pre_tps", "--priority", "1", "--yes")
    assert (held(database)["0.1.1"].owner, held(database)["0.1.1"].priority) == ("lab_out", 1)
    with filelock.FileLock(database.with_name(database.name + LOCK_SUFFIX)):
        done = run("move", database, "-s", "7", "--to", "lab_out", "--into", "ob_pre_tps", "--yes")
        assert (done.exit_code, done.stdout) == (7, "")
        assert "then move 2 messages in state 7 (post-translation)" in done.stderr
        assert "stop thread lab_out first, too" in done.stderr


def test_what_was_being_written_is_a_possible_duplicate_when_it_is_moved(tmp_path: Path) -> None:
    path = tmp_path / "written.recovery"
    store = RecoveryStore(path)
    store.append([Started(STREAM, 1, 1), stored(message(1, State.PRE_WRITE))])
    store.close()
    assert run("move", path, "--all", "--to", "lab2_out", "--yes").exit_code == 0
    (moved,) = held(path).values()
    assert (moved.state, moved.owner) == (State.OUTBOUND_POST_TPS, "lab2_out")
    assert moved.flags & Flag.POSSIBLE_DUPLICATE
