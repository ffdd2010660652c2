"""`qsctl what-if`: a question about a queue of any broker, as a user asks it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.scenario.xml import read_scenario
from tests.cli.shell import Shell
from tests.sim.foreign import listed_files as files

SQS = ("what-if", "--broker", "sqs", "--arrivals", "0.1/s", "--work", "lognormal:45s,p99=280s", "--horizon", "6h")
QUICK = ("--replications", "3")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return Shell(tmp_path / "state")


def test_a_question_is_answered_in_a_sentence_with_its_error(shell: Shell) -> None:
    done = shell(*SQS, *QUICK, "--vary", "visibility=2min,10min,30min")
    assert done.status == 0, done.err
    sentence = done.out.partition("\n")[0]
    assert re.fullmatch(
        r"VisibilityTimeout = 10min is the smallest of 4 values with duplicates below 1 % of the messages: "
        r"[0-9.]+ ± [0-9.]+ \([0-9.]+ %\); with 30, the default, [0-9,]+ ± [0-9,.]+ \([0-9]+ %\)\.",
        sentence,
    ), sentence
    assert "enough" in done.out
    assert "Assumed: fails=0" in done.out
    assert "The scenario is sqs-queue.xml." in done.out
    queue = read_scenario(Path("sqs-queue.xml")).queue
    assert queue is not None


def test_the_document_has_every_value_with_its_measures(shell: Shell) -> None:
    document = shell(*SQS, *QUICK, "--vary", "visibility=30,30min", "-o", "json").document
    assert (document["setting"], document["path"], document["in_force"]) == (
        "VisibilityTimeout", "visibility/timeout", "30",
    )  # fmt: skip
    rows = {(row["value"], row["measure"]): row for row in document["values"]}
    short, long = rows["30", "duplicates"], rows["30min", "duplicates"]
    assert short["in_force"]
    assert long["chosen"]
    assert short["mean"] > 100 > long["mean"]
    assert short["messages"] == long["messages"], "the same arrivals"
    assert {name for _, name in rows} == {"duplicates", "time_to_done_p99", "dead"}


def test_the_command_for_more_gives_more(shell: Shell) -> None:
    document = shell(*SQS, *QUICK, "--vary", "visibility=30,30min", "-o", "json").document
    words = shlex.split(document["more"])
    assert words[:3] == ["qsctl", "simulate", "sqs-queue.xml"]
    assert "visibility/timeout=1800s" in words
    assert shell(*words[1:]).status == 0


def test_the_same_question_gives_the_same_answer_and_one_file(shell: Shell) -> None:
    first = shell(*SQS, *QUICK, "--vary", "visibility=30,30min", "-o", "json").document
    again = shell(*SQS, *QUICK, "--vary", "visibility=30,30min", "-o", "json").document
    assert {**again, "compile_s": 0} == {**first, "compile_s": 0}
    other = shell(*SQS, *QUICK, "--set", "maxReceiveCount=3", "-o", "json").document
    assert other["file"] == "sqs-queue-2.xml"
    assert {path.name for path in Path.cwd().glob("*.xml")} == {"sqs-queue.xml", "sqs-queue-2.xml"}


def test_a_queue_as_it_is_has_a_sentence_too(shell: Shell) -> None:
    done = shell(*SQS, *QUICK)
    assert done.status == 0
    assert re.match(r"sqs: of 2,\d{3} messages a run, 99 % done within [0-9.]+ s ± ", done.out)


def test_no_value_that_is_shown_to_be_enough_is_the_answer_no(shell: Shell) -> None:
    done = shell(*SQS, *QUICK, "--vary", "visibility=30,60", "--target", "duplicates<0.1%")
    assert done.status == ExitStatus.NO
    assert "no value is shown to have duplicates below 0.1%; the lowest is with 60" in done.out


def test_of_a_listed_queue_the_listed_value_is_in_force(shell: Shell) -> None:
    Path("queues.txt").write_text(files.RABBITMQ_TEXT)
    document = shell(
        "what-if", "--from", "queues.txt", "--queue", "billing", "--work", "10ms", "--set", "fails=20%", "--horizon",
        "1min", "--vary", "delivery-limit=1,9", *QUICK, "-o", "json",
    ).document  # fmt: skip
    assert (document["in_force"], document["file"]) == ("5", "billing.xml")
    assert [row["value"] for row in document["values"] if row["measure"] == "dead"] == ["1", "5", "9"]


def test_a_setting_that_makes_several_values_is_varied_whole(shell: Shell) -> None:
    document = shell(
        "what-if", "--broker", "celery", "--work", "1s", "--horizon", "10min", "--vary", "prefetch=1,8", *QUICK,
        "-o", "json",
    ).document  # fmt: skip
    assert [row["value"] for row in document["values"] if row["measure"] == "time_in_queue_p99"] == ["1", "4", "8"]
    assert "consumer/prefetch=" in document["more"] or document["chosen"] == "4"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ((), ExitStatus.USAGE, "Name a preset with --broker"),
        (("--broker", "sqs", "--vary", "visibility=1s,9s"), ExitStatus.USAGE, "Give it with --work"),
        (("--broker", "sqs", "--vary", "visibility", "--work", "1s"), ExitStatus.USAGE, "is not SETTING=VALUES"),
        (("--broker", "sqs", "--target", "x<1", "--work", "1s"), ExitStatus.USAGE, "is not MEASURE<VALUE"),
        (("--broker", "sqs", "--horizon", "x", "--work", "1s"), ExitStatus.USAGE, "is not a duration"),
        (("--broker", "sqs", "--confidence", "2"), ExitStatus.USAGE, "--confidence"),
        (("--broker", "rabbitmq-classic", "--set", "max-priority=99", "--work", "1s"), ExitStatus.NO, "priorities"),
        (("--broker", "sqs", "--vary", "visibility=x,y", "--work", "1s"), ExitStatus.NO, "is not a duration as in 30s"),
        (("--broker", "sqs", "--out", "mine.xml", "--work", "1s"), ExitStatus.USAGE, "mine.xml exists already"),
        (
            ("--broker", "rabbitmq-classic", "--work", "1s", "--set", "max-priority=3", "--vary", "max-priority=5,99"),
            ExitStatus.NO,
            "priorities",
        ),
    ],
)
def test_what_cannot_be_asked_is_one_error_and_leaves_no_file(
    shell: Shell, arguments: tuple[str, ...], status: ExitStatus, words: str
) -> None:
    Path("mine.xml").write_text("mine")
    done = shell("what-if", *arguments)
    assert done.status == status, done.out + done.err
    assert words in done.err
    assert {path.name for path in Path.cwd().glob("*.xml")} == {"mine.xml"}


@pytest.mark.parametrize("broker", BrokerKind)
def test_a_preset_does_the_load_that_its_consumer_can_do(shell: Shell, broker: BrokerKind) -> None:
    document = shell(
        "what-if", "--broker", broker, "--work", "100ms", "--consumers", "1", "--horizon", "5min", "--target",
        "unfinished<5%", *QUICK, "-o", "json",
    ).document  # fmt: skip
    rows = {row["measure"]: row for row in document["values"]}
    assert rows["unfinished"]["mean"] < 0.05 * rows["unfinished"]["messages"], "busy for 70 % of its time"
    assert rows["lost"]["mean"] == 0


@pytest.mark.parametrize(("work", "is_noted"), [("50ms", True), ("exponential:50ms", False)])
def test_a_prefetch_of_messages_that_all_take_the_same_time_is_noted(shell: Shell, work: str, is_noted: bool) -> None:
    asked = ("--broker", "rabbitmq-quorum", "--arrivals", "90/s", "--work", work, "--consumers", "10")
    done = shell("what-if", *asked, "--vary", "prefetch=1,10", "--horizon", "1min", *QUICK)
    assert ("Every message takes exactly 50ms here" in done.out) == is_noted


def test_a_rate_without_a_unit_is_refused_with_both(shell: Shell) -> None:
    done = shell("what-if", "--broker", "sqs", "--arrivals", "90", "--work", "1s")
    assert done.status == 2
    assert "--arrivals '90' has no unit" in done.err
    assert "90/s" in done.err
    assert "90/min" in done.err


def test_a_value_that_brings_an_element_with_it_is_varied_too(shell: Shell) -> None:
    """Without a redrive policy SQS has no dead letters, so that --set cannot make the one of the other."""
    document = shell(
        *SQS, *QUICK, "--set", "fails=10%", "--set", "visibility=20min", "--vary", "maxReceiveCount=2,9", "-o", "json"
    ).document
    assert [row["value"] for row in document["values"] if row["measure"] == "dead"] == ["2", "9", "unlimited"]
    assert document["chosen"] == "9"
    queue = read_scenario(Path(document["file"])).queue
    assert queue is not None
    assert (queue.retry.max_deliveries, queue.dead_letters is not None) == (9, True), "the answer's own scenario"
    assert "--set" not in document["more"]
