"""`qsctl init --broker` and `--from`: scenarios of queues of other brokers, as a user makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.scenario.xml import read_scenario
from tests.cli.shell import Shell
from tests.sim.foreign import listed_files as files


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path / "state")


@pytest.mark.parametrize("broker", BrokerKind)
def test_a_preset_is_a_scenario_that_is_read(shell: Shell, broker: BrokerKind) -> None:
    done = shell("init", "jobs.xml", "--broker", broker, "--work", "45s", "--arrivals", "0.1/s")
    assert done.status == 0, done.err
    assert f"Wrote jobs.xml: a queue of {broker}." in done.out
    queue = read_scenario(Path("jobs.xml")).queue
    assert queue is not None
    assert queue.name == f"{broker}-queue"


def test_listed_assumed_and_given_values_are_shown_with_their_paths(shell: Shell) -> None:
    Path("queues.txt").write_text(files.RABBITMQ_TEXT)
    done = shell(
        "init",
        "o.xml",
        "--from",
        "queues.txt",
        "--queue",
        "orders",
        "--work",
        "20ms",
        "--set",
        "fails=1%",
        "-o",
        "json",
    )
    document = done.document
    assert (document["broker"], document["source"]) == ("rabbitmq-classic", "queues.txt")
    by_path = {each["path"]: (each["value"], each["origin"]) for each in document["parameters"]}
    assert by_path["limits/max-messages"] == ("5000", "listed")
    assert by_path["class/work"] == ("20ms", "given")
    assert by_path["class/fails"] == ("1%", "given")
    assert by_path["consumer/round-trip"] == ("1ms", "assumed")
    assert by_path["consumer/prefetch"] == ("unlimited", "default")
    assert by_path["retry/to"] == ("head", "way")
    (note,) = document["notes"]
    assert "a stream is not a queue" in note
    assert read_scenario(Path("o.xml")).queue is not None


def test_a_consumer_and_its_stream_are_one_queue(shell: Shell) -> None:
    Path("c.json").write_text(files.CONSUMER)
    Path("s.json").write_text(files.STREAM)
    assert shell("init", "j.xml", "--from", "c.json", "--from", "s.json").status == 0
    queue = read_scenario(Path("j.xml")).queue
    assert queue is not None
    assert (queue.name, queue.limits.max_messages, queue.max_unacknowledged) == ("billing", 100_000, 1000)


def test_two_captures_have_the_rate_between_them(shell: Shell) -> None:
    Path("1.txt").write_text(files.KAFKA)
    Path("2.txt").write_text(files.KAFKA.replace("160             60", "460             360"))
    done = shell(
        "init",
        "-",
        "--from",
        "1.txt",
        "--from",
        "2.txt",
        "--interval",
        "60s",
        "--queue",
        "billing:orders",
        "-o",
        "json",
    )
    by_path = {each["path"]: each["value"] for each in done.document["parameters"]}
    assert by_path["publisher/rate"] == "5/s"


def test_standard_input_is_read(shell: Shell) -> None:
    done = shell("init", "-", "--from", "-", stdin=files.SQS.encode())
    assert done.status == 0
    assert '<visibility timeout="45s"' in done.out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--from", "none.txt"), ExitStatus.NOT_FOUND, "there is no file none.txt"),
        (("--from", "q.txt"), ExitStatus.USAGE, "Name one with --queue: orders, billing."),
        (("--from", "q.txt", "--queue", "x"), ExitStatus.NOT_FOUND, "There are orders, billing."),
        (("--from", "q.txt", "--queue", "orders", "--broker", "sqs"), ExitStatus.USAGE, "Leave it out."),
        (("--from", "e.txt"), ExitStatus.NO, "the file is empty"),
        (("--broker", "sqs", "--set", "x=1"), ExitStatus.USAGE, "There are VisibilityTimeout"),
        (("--broker", "sqs", "--set", "visibility=x"), ExitStatus.NO, "'x' is not a duration as in 30s"),
        (("--broker", "sqs", "--work", "x"), ExitStatus.NO, "lognormal:MEAN,p99=TIME"),
        (("--broker", "sqs", "--consumers", "0"), ExitStatus.NO, "a whole number from 1"),
        (("--broker", "rabbitmq-classic", "--set", "max-priority=99"), ExitStatus.NO, "priorities"),
        (("--broker", "nothing"), ExitStatus.USAGE, "rabbitmq-classic"),
        (("--work", "1s"), ExitStatus.USAGE, "--work is of a queue of another broker"),
        (("--broker", "sqs", "--from-broker", "q.txt"), ExitStatus.USAGE, "Give one of them."),
    ],
)
def test_what_cannot_be_made_is_one_error_and_leaves_no_file(
    shell: Shell, arguments: tuple[str, ...], status: ExitStatus, words: str
) -> None:
    Path("q.txt").write_text(files.RABBITMQ_TEXT)
    Path("e.txt").write_text("")
    done = shell("init", "made.xml", *arguments)
    assert done.status == status, done.err
    assert words in done.err
    assert not Path("made.xml").exists()


def test_a_file_that_exists_is_kept(shell: Shell) -> None:
    Path("made.xml").write_text("mine")
    assert shell("init", "made.xml", "--broker", "sqs").status == ExitStatus.USAGE
    assert Path("made.xml").read_text() == "mine"
    assert shell("init", "made.xml", "--broker", "sqs", "--force").status == 0


def test_measured_times_are_found_from_the_scenario(shell: Shell) -> None:
    Path("times.csv").write_text("duration_s\n1\n3\n")
    Path("sub").mkdir()
    for file in ("here.xml", "sub/there.xml"):
        assert shell("init", file, "--broker", "sqs", "--work", "empirical:times.csv").status == 0
        assert read_scenario(Path(file)).queue is not None
    assert 'work="empirical:../times.csv"' in Path("sub/there.xml").read_text()
    assert [path.name for path in Path("sub").iterdir()] == ["there.xml"]
    done = shell("init", "none/there.xml", "--broker", "sqs")
    assert done.status == ExitStatus.USAGE
    assert "none cannot be written to: No such file or directory" in done.err
