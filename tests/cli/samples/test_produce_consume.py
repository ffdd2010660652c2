"""`qsctl produce` and `qsctl consume`: what goes in comes out, acknowledged as asked."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from qsctl.cli.samples._input import MAX_SAMPLE_BYTES
from qsctl.cli.samples.produce_results import ProducedSamples, QueueResult
from qsctl.errors import ExitStatus
from tests.cli.shell import Outcome, Shell
from tests.patience import PATIENCE_S
from tests.processes import running

GUID = "0" * 31 + "7"


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    assert shell("create-queue", "Orders", "--max-delivery-retries", "2").status == 0
    return shell


def contents(outcome: Outcome) -> list[str]:
    return [row["payload"] for row in outcome.document]


def test_what_is_produced_is_consumed_once(qsctl: Shell) -> None:
    produced = qsctl("produce", "Orders", "--text", "hello", "--writer-guid", "7")
    assert produced.status == 0
    assert produced.out == "DomainParticipant/SharedSubscriber/Orders: 1 of 1 accepted\n"
    consumed = qsctl("consume", "Orders", "-o", "json")
    assert consumed.status == 0
    assert consumed.document == [
        {
            "queue_name": "DomainParticipant/SharedSubscriber/Orders",
            "identity": f"{GUID}:1",
            "attempt": 1,
            "redelivered": False,
            "last": False,
            "source_guid": GUID,
            "related_source_guid": "0" * 32,
            "related_identity": f"{'0' * 32}:0",
            "acknowledgment": "accepted",
            "size_bytes": 5,
            "payload": "hello",
            "payload_encoding": "text",
        }
    ]
    empty = qsctl("consume", "Orders")
    assert (empty.status, empty.out) == (1, "No samples.\n")


def test_every_format_shows_the_same_sample(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "a,b", "--count", "4")
    assert "a,b" in qsctl("consume", "Orders").out
    assert json.loads(qsctl("consume", "Orders", "-o", "jsonl").out)["payload"] == "a,b"
    assert "payload: a,b" in qsctl("consume", "Orders", "-o", "yaml").out
    header, row = qsctl("consume", "Orders", "-o", "csv").out.splitlines()
    assert header.startswith("queue_name,identity,attempt,redelivered,last,")
    assert row.endswith('3,"a,b",text')


def test_the_document_of_produce_counts_by_queue(qsctl: Shell) -> None:
    outcome = qsctl("produce", "Orders", "--text", "x", "--text", "y", "--writer-guid", "7", "-o", "json")
    assert outcome.document == {
        "participant": "DomainParticipant",
        "topic_name": "Orders",
        "written": 2,
        "first_identity": f"{GUID}:1",
        "last_identity": f"{GUID}:2",
        "queues": [
            {
                "queue_name": "DomainParticipant/SharedSubscriber/Orders",
                "accepted": 2,
                "rejected": 0,
                "unanswered": 0,
                "acknowledges": True,
            }
        ],
    }


def test_samples_come_in_the_order_in_which_they_were_written(qsctl: Shell) -> None:
    numbers = [str(number) for number in range(25)]
    assert qsctl("produce", "Orders", "--lines", stdin="\n".join(numbers)).status == 0
    assert contents(qsctl("consume", "Orders", "-n", "10", "-o", "json")) == numbers[:10]
    rest = qsctl("consume", "Orders", "-n", "0", "-o", "json")
    assert contents(rest) == numbers[10:]
    assert not any(row["redelivered"] for row in rest.document)


def test_consuming_one_leaves_the_others_untouched(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "one", "--text", "two")
    qsctl("consume", "Orders")
    (left,) = qsctl("get", "messages", "Orders", "-o", "json").document
    assert (left["payload"], left["attempts"], left["redelivered"], left["status"]) == ("two", 0, False, "UNDELIVERED")


def test_a_file_is_one_sample_and_octets_stay_octets(qsctl: Shell, tmp_path: Path) -> None:
    octets = bytes(range(256))
    (tmp_path / "sample.bin").write_bytes(octets)
    assert qsctl("produce", "Orders", "--file", str(tmp_path / "sample.bin")).status == 0
    (row,) = qsctl("consume", "Orders", "-o", "json").document
    assert (base64.b64decode(row["payload"]), row["payload_encoding"], row["size_bytes"]) == (octets, "base64", 256)


def test_standard_input_is_one_sample_unless_lines_are_asked_for(qsctl: Shell) -> None:
    qsctl("produce", "Orders", stdin="two\nlines\n")
    assert contents(qsctl("consume", "Orders", "-n", "0", "-o", "json")) == ["two\nlines\n"]
    qsctl("produce", "Orders", "--lines", stdin="two\n\nlines\n")
    assert contents(qsctl("consume", "Orders", "-n", "0", "-o", "json")) == ["two", "", "lines"]


def test_json_for_a_string_is_its_text_and_for_text_of_json_the_document(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--json", '"plain"', "--json", '{"id": 7,  "ok": true}')
    assert contents(qsctl("consume", "Orders", "-n", "0", "-o", "json")) == ["plain", '{"id":7,"ok":true}']


TYPES = """
<dds><types>
  <struct name="Order">
    <member name="id" type="int32" key="true"/>
    <member name="what" type="string" stringMaxLength="20"/>
  </struct>
</types></dds>
"""


def test_json_goes_through_the_queue_s_type_and_comes_back(qsctl: Shell, tmp_path: Path) -> None:
    types = tmp_path / "types.xml"
    types.write_text(TYPES)
    qsctl("create-queue", "Typed", "--type", "Order")
    order = {"id": 7, "what": "nails"}
    assert qsctl("produce", "Typed", "--json", json.dumps(order), "--types", str(types)).status == 0
    qsctl("produce", "Typed", stdin=b"no order")
    shown = qsctl("get", "messages", "Typed", "--types", str(types))
    assert '{"id": 7, "what": "nails"}' in shown.out
    rows = qsctl("consume", "Typed", "-n", "0", "--types", str(types), "-o", "json").document
    assert [(row["payload"], row["payload_encoding"]) for row in rows] == [(order, "json"), ("no order", "text")]
    wrong = qsctl("produce", "Typed", "--json", '{"id": "7"}', "--types", str(types))
    assert (wrong.status, wrong.out) == (1, "")
    assert "id is '7'" in wrong.err
    untyped = qsctl("produce", "Typed", "--json", json.dumps(order))
    assert (untyped.status, untyped.out) == (2, "")
    assert "the queue's type is Order" in untyped.err


def test_types_without_the_queue_s_are_not_found(qsctl: Shell, tmp_path: Path) -> None:
    types = tmp_path / "types.xml"
    types.write_text(TYPES.replace("Order", "Bill"))
    qsctl("create-queue", "Typed", "--type", "Order")
    outcome = qsctl("consume", "Typed", "--types", str(types))
    assert (outcome.status, outcome.out) == (4, "")
    assert "Bill" in outcome.err
    types.write_text("<dds/>")
    assert "has no <types>" in qsctl("consume", "Typed", "--types", str(types)).err


def test_a_rejected_sample_comes_again_and_is_given_up_after_the_last_attempt(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "bad")
    for attempt in (1, 2, 3):
        (row,) = qsctl("consume", "Orders", "--reject", "-o", "json").document
        assert (row["attempt"], row["acknowledgment"], row["redelivered"]) == (attempt, "rejected", False)
    assert qsctl("consume", "Orders").status == 1
    (status,) = qsctl("get", "status", "Orders", "-o", "json").document
    assert (status["failed_delivery_message_count"], status["sent_message_count"]) == (1, 3)


def test_an_unacknowledged_sample_is_redelivered_with_the_flag(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "held")
    (first,) = qsctl("consume", "Orders", "--no-ack", "-o", "json").document
    assert first["acknowledgment"] == "none"
    (second,) = qsctl("consume", "Orders", "-o", "json").document
    assert (second["payload"], second["redelivered"]) == ("held", True)


def test_a_duplicate_is_acknowledged_and_dropped(qsctl: Shell) -> None:
    for _ in range(2):
        assert qsctl("produce", "Orders", "--text", "once", "--writer-guid", "7").status == 0
    assert len(qsctl("consume", "Orders", "-n", "0", "-o", "json").document) == 1


def test_a_full_queue_refuses_and_the_exit_status_shows_how_much(qsctl: Shell) -> None:
    qsctl("create-queue", "Small", "--max-count", "2")
    some = qsctl("produce", "Small", "--text", "x", "--count", "3")
    assert (some.status, some.out) == (3, "DomainParticipant/SharedSubscriber/Small: 2 of 3 accepted, 1 refused\n")
    none = qsctl("produce", "Small", "--text", "x")
    assert (none.status, none.out) == (7, "DomainParticipant/SharedSubscriber/Small: 0 of 1 accepted, 1 refused\n")


def test_a_queue_that_lets_producers_wait_is_not_answered_in_time(qsctl: Shell) -> None:
    qsctl("create-queue", "Small", "--max-count", "1", "--when-full", "wait")
    assert qsctl("produce", "Small", "--text", "x").status == 0
    waiting = qsctl("produce", "Small", "--text", "y", "--timeout", "100ms")
    assert waiting.status == 8
    assert "1 not answered" in waiting.out
    assert contents(qsctl("consume", "Small", "-n", "0", "-o", "json")) == ["x"]


def test_a_sample_expires_after_its_lifespan(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "short", "--lifespan", "1ms")
    qsctl("produce", "Orders", "--text", "long", "--lifespan", "1h")
    assert contents(qsctl("consume", "Orders", "-n", "0", "-o", "json")) == ["long"]


def test_a_topic_reaches_all_its_queues(qsctl: Shell) -> None:
    assert qsctl("create-subscriber", "Other").status == 0
    assert qsctl("create-queue", "Copy", "--topic", "Orders", "--subscriber", "Other").status == 0
    assert len(qsctl("produce", "Orders", "--text", "both", "-o", "json").document["queues"]) == 2
    for queue in ("Orders@SharedSubscriber", "Other/Copy"):
        assert contents(qsctl("consume", queue, "-o", "json")) == ["both"]


@pytest.mark.slow
def test_commands_at_the_same_time_wait_for_each_other(qsctl: Shell, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qsctl", "produce", "Orders", "--state-dir", str(tmp_path / "state"), "--text"]
    with contextlib.ExitStack() as stack:
        at_once = [
            stack.enter_context(running([*command, f"from {number}", "--timeout", "180s"], stdout=subprocess.DEVNULL))
            for number in range(4)
        ]
        assert [each.wait(timeout=PATIENCE_S) for each in at_once] == [0, 0, 0, 0]
    taken = contents(qsctl("consume", "Orders", "-n", "0", "-o", "json"))
    assert sorted(taken) == [f"from {number}" for number in range(4)]


def test_a_reply_names_its_request_and_its_requester(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "re", "--related-identity", "9:4", "--source-guid", "a")
    (row,) = qsctl("consume", "Orders", "-o", "json").document
    assert row["related_identity"] == f"{'0' * 31}9:4"
    assert row["source_guid"] == f"{'0' * 31}a"


@pytest.mark.slow
def test_a_mistake_in_the_input_reports_the_samples_written_before(qsctl: Shell, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_bytes(b"one\ntwo\n" + b"x" * (MAX_SAMPLE_BYTES + 1))
    outcome = qsctl("produce", "Orders", "--lines", "--file", str(file))
    assert (outcome.status, outcome.out) == (ExitStatus.PARTLY_DONE, "")
    assert f"{file}, line 3 is longer than" in outcome.err
    assert "The 2 samples before it are written." in outcome.err
    assert contents(qsctl("consume", "Orders", "-n", "0", "-o", "json")) == ["one", "two"]


def test_a_mistake_in_the_last_document_writes_none(qsctl: Shell) -> None:
    assert qsctl("produce", "Orders", "--json", "1", "--json", "{").status == ExitStatus.NO
    assert qsctl("consume", "Orders").status == ExitStatus.NO


def test_an_empty_sample_is_written_when_it_is_given(qsctl: Shell) -> None:
    assert qsctl("produce", "Orders", "--text", "").status == 0
    assert contents(qsctl("consume", "Orders", "-o", "json")) == [""]


def test_a_reply_is_received_by_the_requester_that_it_is_for(qsctl: Shell) -> None:
    qsctl("produce", "Orders", "--text", "for seven", "--related-source-guid", "7")
    assert contents(qsctl("consume", "Orders", "--source-guid", "7", "-o", "json")) == ["for seven"]
    assert qsctl("consume", "Orders", "--source-guid", "7").status == ExitStatus.NO


def test_waiting_for_a_sample_ends_after_the_time_given(qsctl: Shell) -> None:
    assert qsctl("consume", "Orders", "--timeout", "300ms").status == 1


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("produce", "Oders", "--text", "x"), 4, "there is no queue or topic 'Oders'"),
        (("produce", "Orders", "--text", "x", "--json", "1"), 2, "--text and --json are both given"),
        (("produce", "Orders", "--text", "x", "--lines"), 2, "--lines is for --file and standard input"),
        (("produce", "Orders", "--json", "{"), 1, "is not JSON"),
        (("produce", "Orders", "--file", "nowhere.txt"), 4, "there is no file nowhere.txt"),
        (("produce", "Orders", "--file", "."), 1, "cannot be read"),
        (("produce", "Orders", "--text", "x", "--writer-guid", "xyz"), 2, "'xyz' is not a GUID"),
        (("produce", "Orders", "--text", "x", "--lifespan", "soon"), 2, "'soon' is not a duration"),
        (("produce", "Orders", "--text", "x", "--related-identity", f"7:{2**63}"), 2, "is not a sample identity"),
        (("produce", "Orders", "--count", "2"), 2, "--count cannot repeat standard input"),
        (("produce", "Orders", "--file", "-", "--count", "2"), 2, "--count cannot repeat standard input"),
        (("produce", "Orders"), 1, "there is nothing to write: standard input is empty"),
        (("produce", "Orders", "--lines"), 1, "there is nothing to write: standard input is empty"),
        (("produce", "Orders", "--file", "/dev/null"), 1, "there is nothing to write: /dev/null is empty"),
        (("produce", "Orders", "--file", "/dev/null/x"), 4, "there is no file /dev/null/x"),
        (("produce", "Orders", "--json", "NaN"), 1, "NaN is not JSON"),
        (("produce", "Orders", "--json", "1" * 5000), 1, "has a number that is too long"),
        (("consume", "Orders", "--types", "nowhere.xml"), 4, "there is no such file"),
        (("consume", "Orders", "-o", "xml"), 2, "this command prints no XML"),
        (("consume", "Orders", "--state-dir", "/dev/null"), 1, "the state directory /dev/null cannot be used"),
        (("consume", "Orders", "--source-guid", "xyz"), 2, "'xyz' is not a GUID"),
        (("create-queue", "Big", "--max-count", "9" * 20), 2, "--max-count"),
        (("create-queue", "Big", "--max-delivery-retries", "9" * 20), 2, "--max-delivery-retries"),
        (("create-queue", "Odd", "--type", "T\udcff"), 2, "is not a type"),
        (("reply", "A@B", "--exec", "'", "--service", "dds:7"), 2, "No closing quotation"),
        (("produce", "Orders", "--text", "x", "--types", "t.xml"), 2, "--types is for --json"),
        (("consume", "Oders"), 4, "there is no queue 'Oders'"),
        (("consume", "Orders", "--reject", "--no-ack"), 2, "--reject and --no-ack are both given"),
        (("consume", "Orders", "--timeout", "soon"), 2, "--timeout: 'soon' is not a duration"),
        (("consume", "Orders", "--service", "dds:999"), 2, "999"),
        (("consume", "Orders", "--service", "tcp:x"), 2, "is not a service location"),
    ],
)
def test_a_mistake_is_reported_on_standard_error(
    qsctl: Shell, arguments: tuple[str, ...], status: int, message: str
) -> None:
    outcome = qsctl(*arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err


@pytest.mark.parametrize(
    ("queues", "status"),
    [
        ([QueueResult("Q", 5, 0, 0, True)], ExitStatus.DONE),
        ([QueueResult("Q", 4, 1, 0, True)], ExitStatus.PARTLY_DONE),
        ([QueueResult("Q", 5, 0, 0, True), QueueResult("R", 0, 5, 0, True)], ExitStatus.PARTLY_DONE),
        ([QueueResult("Q", 0, 5, 0, True)], ExitStatus.REFUSED),
        ([QueueResult("Q", 0, 0, 5, True)], ExitStatus.NO_ANSWER),
        ([QueueResult("Q", 0, 0, 5, False)], ExitStatus.DONE),
        ([QueueResult("Q", 0, 0, 5, False), QueueResult("R", 0, 0, 5, True)], ExitStatus.NO_ANSWER),
    ],
)
def test_the_exit_status_of_produce(queues: list[QueueResult], status: ExitStatus) -> None:
    assert ProducedSamples("P", "T", 5, "", "", tuple(queues)).exit_status is status


TYPED = (
    '<types><struct name="Order"><member name="id" type="int32"/></struct>'
    '<enum name="Color"><enumerator name="RED"/></enum></types>'
)


def test_text_for_a_queue_of_another_type_is_one_error_and_nothing_is_written(qsctl: Shell) -> None:
    assert qsctl("create-queue", "Typed", "--type", "Order").status == 0
    refused = qsctl("produce", "Typed", "--text", "hello")
    assert refused.status == ExitStatus.USAGE
    assert "the queue's type is Order" in refused.err
    assert "--types" in refused.err
    assert "Traceback" not in refused.err
    assert qsctl("get", "messages", "Typed", "-o", "json").document == []


def test_json_for_an_enumeration_is_refused_in_words(qsctl: Shell, tmp_path: Path) -> None:
    types = tmp_path / "types.xml"
    types.write_text(TYPED)
    assert qsctl("create-queue", "Colors", "--type", "Color").status == 0
    refused = qsctl("produce", "Colors", "--json", '"RED"', "--types", str(types))
    assert refused.status == ExitStatus.REFUSED
    assert "the type Color is an enumeration" in refused.err
    assert "Order" in refused.err


def test_a_type_file_runs_nothing(qsctl: Shell, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    code = f"a:__import__('pathlib').Path({str(ran)!r}).touch() or '''"
    types = tmp_path / "types.xml"
    types.write_text(f'<types><struct name="Order"><member name="{code}" type="int32"/></struct></types>')
    assert qsctl("create-queue", "Typed", "--type", "Order").status == 0
    refused = qsctl("produce", "Typed", "--json", "{}", "--types", str(types))
    assert refused.status == ExitStatus.NO
    assert "types.xml:1: error: the attribute name of <member>" in refused.err
    assert not ran.exists()
