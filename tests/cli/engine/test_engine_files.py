"""A recovery database as a file: renamed, copied, moved, exchanged, damaged, cut; every command judges it alike."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.integration.database import stored
from qsctl.core.integration.message import Flag, Message, MessageId, State
from qsctl.core.integration.records import STREAM, Started
from qsctl.errors import ExitStatus
from qsctl.sim.engine._recovery_file import KIND, LOG
from qsctl.sim.engine.recovery_store import RecoveryStore, read_recovery_database
from qsctl.storage.sqlite.store import SqliteStorage
from tests.commands import command_line
from tests.storage.contract import enqueued

EARLIER = Path(__file__).parent / "earlier"
"""Databases of the version before senders were recorded, made by its code."""
COUNT = 60
PAGE_BYTES = 4096

SCENARIO = """<scenario name="NAME" model="integration" horizon="20s">
  <engine>
    <process name="p">
      <thread name="in"><inbound><constant rate="2/s"/><route><detail to="out"/></route></inbound></thread>
      <thread name="out"><outbound><constant rate="100/s"/></outbound><stop start="0s" duration="60s"/></thread>
    </process>
  </engine>
</scenario>
"""


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(command_line(), ["engine", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def message(number: int, error: int = 0) -> Message:
    mid = MessageId(0, 1, number)
    return Message(
        number, mid, mid, State.OUTBOUND_POST_TPS, number, "p", "out", "in", "out", flags=Flag.USERDB, error=error,
        created_at_ns=number, entered_at_ns=number, payload=f"in {number} m {'x' * 300}\n".encode(),
    )  # fmt: skip


def filled(path: Path, until: Callable[[RecoveryStore], None] = RecoveryStore.close) -> None:
    store = RecoveryStore(path, scenario="small")
    store.append([Started(STREAM, 1, 1)])
    for number in range(1, COUNT, 2):
        store.append([stored(message(number)), stored(message(number + 1, error=303 if number == 1 else 0))])
    until(store)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("closed") / "r.db"
    filled(path)
    assert not path.with_name("r.db-wal").exists()
    return path.read_bytes()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A database whose log has all messages, as a killed engine leaves it, and the log."""
    path = tmp_path_factory.mktemp("killed") / "r.db"
    found: list[bytes] = []

    def copy(store: RecoveryStore) -> None:
        found.extend((path.read_bytes(), path.with_name("r.db-wal").read_bytes()))
        store.close()

    filled(path, copy)
    return found[0], found[1]


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.xml"
    path.write_text(SCENARIO.replace("NAME", "small"), encoding="utf-8")
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.endswith(".lock")}


def ids(path: Path, status: int = 0) -> int:
    """How many messages `dump` lists in both databases."""
    counts = []
    for option in ([], ["-e"]):
        done = run("dump", path, "-C", *option)
        assert done.exit_code == status, done.output
        counts.append(int(done.stdout))
    return sum(counts)


def check_refused(scenario: Path, path: Path, words: str, status: int = ExitStatus.DAMAGED) -> None:
    """Every command refuses the file, with one status, and changes nothing."""
    before = content(path.parent)
    commands: Sequence[Sequence[object]] = (
        ("dump", path),
        ("delete", path, "--all", "--yes"),
        ("resend", path, "--all", "--yes"),
        ("run", scenario, "--database", path),
    )
    for command in commands:
        done = run(*command)
        assert (done.exit_code, done.stdout) == (status, ""), (command, done.output)
        assert words in " ".join(done.stderr.split()), (command, done.stderr)
    assert content(path.parent) == before


def test_a_database_is_the_same_by_any_name_and_in_any_place(scenario: Path, closed: bytes) -> None:
    path = Path("r.db")
    path.write_bytes(closed)
    shutil.copy(path, "copy of it")
    Path("elsewhere").mkdir()
    for step in (lambda: path, lambda: Path("copy of it"), lambda: path.rename("elsewhere/other.name")):
        assert ids(step()) == COUNT
    moved = Path("elsewhere/other.name")
    incarnations = {read_recovery_database(each).peers.incarnation for each in (moved, Path("copy of it"))}
    assert len(incarnations) == 1
    done = run("run", scenario, "--database", moved, "--until", "5s", "-o", "json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["recovered"], found["left"], found["damage"]) == (0, COUNT - 1, COUNT - 1 + 9, [])
    assert ids(Path("copy of it")) == COUNT


def test_a_copy_of_a_killed_engine_s_database_needs_its_log(scenario: Path, killed: tuple[bytes, bytes]) -> None:
    path = Path("copy.db")
    path.write_bytes(killed[0])
    path.with_name("copy.db-wal").write_bytes(killed[1])
    assert ids(path) == COUNT
    Path("alone.db").write_bytes(killed[0])
    done = run("dump", "alone.db", "-C")
    assert (done.exit_code, done.stdout) == (ExitStatus.DAMAGED, "0\n")
    assert "its log alone.db-wal is not beside it" in " ".join(done.stderr.split())
    before = content(Path())
    done = run("run", scenario, "--database", "alone.db")
    assert (done.exit_code, content(Path())) == (ExitStatus.DAMAGED, before)
    assert "--discard-damaged" in done.stderr
    done = run("run", scenario, "--database", "alone.db", "--discard-damaged", "-o", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == ExitStatus.DAMAGED
    assert [(each["kept_as"], "its log" in each["what"]) for each in found["damage"]] == [("alone.db.damaged", True)]
    assert Path("alone.db.damaged").read_bytes() == killed[0]
    assert run("dump", "alone.db").exit_code == 0


def test_a_log_without_its_database_is_not_begun_anew(scenario: Path, killed: tuple[bytes, bytes]) -> None:
    Path("r.db-wal").write_bytes(killed[1])
    done = run("run", scenario, "--database", "r.db")
    assert (done.exit_code, Path("r.db").exists()) == (ExitStatus.DAMAGED, False)
    assert Path("r.db-wal").read_bytes() == killed[1]


def test_what_is_something_else_is_refused_and_left_as_it_is(scenario: Path, closed: bytes) -> None:
    from qsctl.service.stores._queue_codec import QUEUE_CODEC

    Path("notes.txt").write_text("to do\n" * 2_000, encoding="utf-8")
    with sqlite3.connect("browser.db") as connection:
        connection.execute("CREATE TABLE batch (number, record_count, body)")
        connection.execute("INSERT INTO batch VALUES (1, 1, x'00')")
    connection.close()
    queue = SqliteStorage(Path("queue.db"), FilesystemSettings(), QUEUE_CODEC)
    queue.append([enqueued(position) for position in range(1, 20)])
    queue.close()
    for name in ("notes.txt", "browser.db", "queue.db"):
        check_refused(scenario, Path(name), "is not a recovery database")
        assert run("run", scenario, "--database", name, "--discard-damaged").exit_code == ExitStatus.DAMAGED


def test_another_scenario_s_database_is_refused(scenario: Path, closed: bytes) -> None:
    Path("r.db").write_bytes(closed)
    scenario.write_text(SCENARIO.replace("NAME", "other"), encoding="utf-8")
    before = content(Path())
    done = run("run", scenario, "--database", "r.db")
    assert (done.exit_code, content(Path())) == (ExitStatus.DAMAGED, before)
    assert "is the recovery database of scenario 'small', not of 'other'" in " ".join(done.stderr.split())


def test_links_are_refused_and_another_name_of_the_file_is_a_copy_of_it(scenario: Path, closed: bytes) -> None:
    path = Path("r.db")
    path.write_bytes(closed)
    Path("link.db").symlink_to("r.db")
    Path("hard.db").hardlink_to(path)
    check_refused(scenario, Path("link.db"), "is not a plain file", ExitStatus.NO)
    store = RecoveryStore(path)
    assert run("run", scenario, "--database", path).exit_code == ExitStatus.REFUSED
    assert run("delete", path, "--all", "--yes").exit_code == ExitStatus.REFUSED
    assert run("delete", "hard.db", "--all", "--yes").exit_code == 0
    assert (ids(Path("hard.db")), len(store.database.messages())) == (1, COUNT - 1)
    path.rename("moved.db")
    assert run("run", scenario, "--database", "moved.db").exit_code == ExitStatus.REFUSED
    Path("moved.db").rename("r.db")
    store.close()
    assert ids(path) == COUNT


def check_damaged(scenario: Path, path: Path) -> str:
    """What a damaged file has is listed, not changed, and run on; or all refuse it. It is never less with status 0."""
    before = content(path.parent)
    dumped = run("dump", path, "-C")
    if dumped.exit_code == 0:
        assert dumped.stdout == f"{COUNT - 1}\n"
        return "whole"
    assert dumped.exit_code == ExitStatus.DAMAGED, dumped.output
    assert run("delete", path, "--all", "--yes").exit_code == ExitStatus.DAMAGED
    assert run("resend", path, "-e", "--all", "--yes").exit_code in {ExitStatus.DAMAGED, ExitStatus.USAGE}
    assert content(path.parent) == before
    ran = run("run", scenario, "--database", path, "--until", "1s", "-o", "json")
    assert ran.exit_code == ExitStatus.DAMAGED, ran.output
    if not dumped.stdout:
        assert content(path.parent) == before, "nothing can be read, and nothing is changed"
        return "refused"
    found = json.loads(ran.stdout)
    assert found["damage"], found
    assert found["recovered"] == int(dumped.stdout)
    kept = path.with_name(f"{path.name}.damaged")
    assert kept.read_bytes() == before[path.name]
    assert all(each["kept_as"] == str(kept) for each in found["damage"])
    assert run("dump", path).exit_code == 0
    return "salvaged"


FLIPS = {
    "magic number": 3,
    "page size": 16,
    "state of the log": 18,
    "page count": 30,
    "schema format": 47,
    "text encoding": 59,
    "format": 63,
    "kind": 69,
    "tree of the first page": 103,
    "definition of a table": PAGE_BYTES - 60,
}


@pytest.mark.parametrize("place", FLIPS)
def test_a_flip_in_the_first_page_costs_no_message(scenario: Path, closed: bytes, place: str) -> None:
    octets = bytearray(closed)
    octets[FLIPS[place]] ^= 0x40
    path = Path("r.db")
    path.write_bytes(octets)
    if check_damaged(scenario, path) == "salvaged":
        found = read_recovery_database(path)
        messages = {each.mid.number for each in (*found.database.messages(), *found.database.failed())}
        assert messages >= set(range(1, COUNT + 1))


def test_flipped_octets_are_reported_and_the_rest_goes_on(scenario: Path, closed: bytes) -> None:
    """A bad sector anywhere behind the first page. Where it is the root of a table, nothing can be read by it."""
    draw, found = random.Random(3), list[str]()
    for number in range(12):
        octets = bytearray(closed)
        start = draw.randrange(PAGE_BYTES, len(octets) - 200)
        octets[start : start + 200] = draw.randbytes(200)
        path = Path(f"{number}/r.db")
        path.parent.mkdir()
        path.write_bytes(octets)
        found.append(check_damaged(scenario, path))
    assert found.count("salvaged") > 6, found


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.6, 0.95])
def test_a_cut_file_is_never_taken_for_an_empty_or_a_shorter_one(scenario: Path, closed: bytes, share: float) -> None:
    path = Path("r.db")
    path.write_bytes(closed[: int(len(closed) * share)])
    found = check_damaged(scenario, path)
    assert found != "whole"
    assert (found == "salvaged") >= (share > 0.9)


def test_an_emptied_database_is_begun_anew_only_where_the_user_states_it(scenario: Path) -> None:
    Path("r.db").touch()
    check_refused(scenario, Path("r.db"), "is empty: it is not a recovery database")
    done = run("run", scenario, "--database", "r.db", "--until", "1s", "--discard-damaged", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)["offered"]) == (ExitStatus.DAMAGED, 2)


@pytest.mark.parametrize("place", ["header", "salt", "page", "checksum"])
def test_a_damaged_log_is_read_on_behind_the_damage(scenario: Path, killed: tuple[bytes, bytes], place: str) -> None:
    octets = bytearray(killed[1])
    frame = 24 + PAGE_BYTES
    at = {"header": 17, "salt": 32 + 5 * frame + 9, "page": 32 + 5 * frame + 24 + 4000, "checksum": 32 + 5 * frame + 18}
    octets[at[place]] ^= 4
    path = Path("r.db")
    path.write_bytes(killed[0])
    path.with_name(f"r.db{LOG}").write_bytes(octets)
    done = run("dump", path, "-C")
    assert done.exit_code == ExitStatus.DAMAGED
    assert "the log beside it is damaged" in " ".join(done.stderr.split())
    assert int(done.stdout) > COUNT - 5


def test_a_log_that_lost_its_end_is_an_earlier_moment_of_the_run(scenario: Path, killed: tuple[bytes, bytes]) -> None:
    for share in (0.3, 0.7):
        path = Path(f"{share}.db")
        path.write_bytes(killed[0])
        path.with_name(f"{share}.db{LOG}").write_bytes(killed[1][: int(len(killed[1]) * share)])
        found = ids(path)
        assert found % 2 == 0, "whole transactions"
        assert 0 < found < COUNT


def test_a_log_of_another_database_is_reported(scenario: Path, killed: tuple[bytes, bytes], tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    document = run("run", scenario, "--database", other, "--until", "5s")
    assert document.exit_code == 0
    shutil.copy(other, "r.db")
    Path(f"r.db{LOG}").write_bytes(killed[1])
    check_refused_with_listing(scenario, Path("r.db"), "is another database's")


def check_refused_with_listing(scenario: Path, path: Path, words: str) -> None:
    """It is listed as far as it can be read; nothing is changed, and no engine runs with it."""
    before = content(path.parent)
    for command in (("dump", path), ("delete", path, "--all", "--yes"), ("run", scenario, "--database", path)):
        done = run(*command)
        assert done.exit_code == ExitStatus.DAMAGED, (command, done.output)
        assert words in " ".join(done.stderr.split())
    assert content(path.parent) == before


@pytest.mark.parametrize(("name", "listed", "failed"), [("ended", 3, 2), ("killed", 1, 0)])
def test_a_database_of_an_earlier_version_is_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, listed: int, failed: int
) -> None:
    """Made by the version before senders were recorded: ended after 3 s, and killed behind its first messages."""
    monkeypatch.chdir(tmp_path)
    original = {each.name: each.read_bytes() for each in EARLIER.glob(f"{name}.recovery*")}
    for suffix, octets in original.items():
        Path(suffix.replace(f"{name}.recovery", "renamed.db")).write_bytes(octets)
    path = Path("renamed.db")
    assert (run("dump", path, "-C").stdout, run("dump", path, "-e", "-C").stdout) == (f"{listed}\n", f"{failed}\n")
    assert content(Path()) == {
        each.replace(f"{name}.recovery", "renamed.db"): octets for each, octets in original.items()
    }
    done = run("run", EARLIER / "small.xml", "--database", path, "--drain", "-o", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["recovered"], found["left"], found["damage"]) == (listed, 0, [])
    sent = {"ended": 6, "killed": 1}[name]
    assert found["offered"] == 40 - sent, "each sender goes on behind its newest message"
    numbers = [each.payload.split()[1] for each in read_recovery_database(path).database.failed()]
    assert numbers == [str(each).encode() for each in range(3, 41, 3)]
    again = read_recovery_database(path)
    assert (again.is_current, again.made is not None and again.made.scenario) == (True, "small")
    assert path.read_bytes()[68:72] == KIND.to_bytes(4)
    assert {each.name: each.read_bytes() for each in EARLIER.glob(f"{name}.recovery*")} == original
