"""Administration from the command line: exit statuses first, then what each format shows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from qsctl.errors import ExitStatus
from tests.cli.shell import Shell

P = "/domain_participant/DomainParticipant"
S = f"{P}/shared_subscriber/SharedSubscriber"
ORDERS = f"{S}/shared_reader_queue/Orders"
SNIPPET = """
<shared_reader_queue name="Orders" session="Session">
  <topic_name>Orders</topic_name>
  <type_name>DDS::String</type_name>
  <queue_qos>
    <redelivery>
      <max_delivery_retries>3</max_delivery_retries>
    </redelivery>
  </queue_qos>
</shared_reader_queue>
"""


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "state")


def test_the_first_tour_works_in_an_empty_directory(qsctl: Shell) -> None:
    for arguments in (
        ("create-queue", "Orders"),
        ("get", "status"),
        ("produce", "Orders", "--text", "hello"),
        ("get", "status", "-o", "json"),
        ("consume", "Orders"),
        ("delete-queue", "Orders"),
    ):
        assert qsctl(*arguments).status == ExitStatus.DONE


def test_a_fresh_service_has_a_status_and_it_is_empty(qsctl: Shell) -> None:
    shown = qsctl("get", "status")
    assert (shown.status, shown.out) == (0, "No queues yet: `qsctl create-queue NAME` makes one.\n")
    assert qsctl("get", "status", "-o", "json").document == []
    assert qsctl("get", "status", "-o", "csv").out == ""


def test_creating_a_queue_shows_the_return_code_in_every_format(qsctl: Shell) -> None:
    text = "queue DomainParticipant/SharedSubscriber/{} is created"
    assert qsctl("create-queue", "A").out == f"OK: {text.format('A')}\n"
    assert qsctl("create-queue", "B", "-o", "json").document == {
        "return_code": "OK",
        "resource": f"{S}/shared_reader_queue/B",
        "message": text.format("B"),
        "service": "qsctl",
    }
    assert yaml.safe_load(qsctl("create-queue", "C", "-o", "yaml").out)["return_code"] == "OK"
    (row,) = csv.DictReader(io.StringIO(qsctl("create-queue", "D", "-o", "csv").out))
    assert row == {
        "return_code": "OK",
        "resource": f"{S}/shared_reader_queue/D",
        "message": text.format("D"),
        "service": "qsctl",
    }


def test_the_same_queue_again_is_duplicated_and_another_one_already_exists(qsctl: Shell) -> None:
    assert qsctl("create-queue", "Orders").status == ExitStatus.DONE
    again = qsctl("create-queue", "Orders")
    assert (again.status, again.out) == (ExitStatus.DUPLICATED, "")
    assert again.err == (
        "Error: DUPLICATED: queue DomainParticipant/SharedSubscriber/Orders exists already, with the same "
        "configuration\nWith --idempotent this counts as done.\n"
    )
    other = qsctl("create-queue", "Orders", "--max-count", "5")
    assert (other.status, other.out) == (ExitStatus.ALREADY_EXISTS, "")
    assert "ALREADY_EXISTS: queue DomainParticipant/SharedSubscriber/Orders" in other.err
    as_json = qsctl("create-queue", "Orders", "-o", "json")
    assert json.loads(as_json.err)["error"]["kind"] == "Duplicated"
    assert json.loads(as_json.err)["error"]["exit_status"] == 5


def test_idempotent_commands_may_run_again(qsctl: Shell) -> None:
    for code in ("OK", "DUPLICATED"):
        done = qsctl("create-queue", "Orders", "--idempotent", "-o", "json")
        assert (done.status, done.document["return_code"]) == (0, code)
    assert qsctl("create-queue", "Orders", "--max-count", "5", "--idempotent").status == ExitStatus.ALREADY_EXISTS
    for _ in range(2):
        done = qsctl("delete-queue", "Orders", "--idempotent", "-o", "json")
        assert (done.status, done.document["return_code"]) == (0, "OK")
    assert done.document["message"] == "there is no queue 'Orders': nothing to delete"
    by_resource = qsctl("delete-queue", f"{S}/shared_reader_queue/Orders", "--idempotent")
    assert (by_resource.status, by_resource.err) == (0, "")
    assert by_resource.out.startswith("OK: there is no shared reader queue")


def test_deleting_what_is_not_there_is_not_found(qsctl: Shell) -> None:
    qsctl("create-queue", "Orders")
    gone = qsctl("delete-queue", "Oders")
    assert (gone.status, gone.out) == (ExitStatus.NOT_FOUND, "")
    assert "Did you mean DomainParticipant/SharedSubscriber/Orders?" in gone.err
    by_resource = qsctl("delete-queue", f"{S}/shared_reader_queue/Oders")
    assert by_resource.status == ExitStatus.NOT_FOUND
    assert by_resource.err.startswith("Error: ERROR: there is no shared reader queue")


def test_a_queue_from_xml_equals_the_one_from_options(qsctl: Shell, tmp_path: Path) -> None:
    (tmp_path / "orders.xml").write_text(SNIPPET)
    assert qsctl("create-queue", "--file", str(tmp_path / "orders.xml")).status == 0
    assert qsctl("create-queue", "--xml", SNIPPET).status == ExitStatus.DUPLICATED
    assert qsctl("create-queue", "Orders", "--file", "-", stdin=SNIPPET).status == ExitStatus.DUPLICATED
    assert qsctl("create-queue", "Orders", "--max-delivery-retries", "3").status == ExitStatus.DUPLICATED
    assert qsctl("create-queue", "Orders", "--max-delivery-retries", "4").status == ExitStatus.ALREADY_EXISTS


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("create-queue",), 2, "the queue has no name"),
        (("create-queue", "a/b"), 2, "'a/b' is not a name for a queue"),
        (("create-queue", "Bills", "--xml", SNIPPET), 2, "'Bills' on the command line and 'Orders' in --xml"),
        (("create-queue", "--xml", SNIPPET, "--max-count", "5"), 2, "--max-count cannot be combined with XML"),
        (("create-queue", "--xml", SNIPPET, "--file", "x.xml"), 2, "--file and --xml are both given"),
        (("create-queue", "--file", "nowhere.xml"), 4, "there is no file nowhere.xml"),
        (("create-queue", "--xml", "<shared_reader_queue"), 1, ""),
        (("create-queue", "--xml", "<!DOCTYPE x><shared_reader_queue/>"), 1, ""),
        (("create-queue", "Q", "--subscriber", "Nobody"), 4, "there is no shared subscriber 'Nobody'"),
        (("create-queue", "Q", "--dead-letter", "Nowhere"), 7, "Nowhere"),
        (("create-queue", "Q", "--session", "Nope"), 7, "SharedSubscriber has no session 'Nope'"),
        (("create-subscriber",), 2, "the shared subscriber has no name"),
        (("create-subscriber", "T", "--participant", "X"), 4, "there is no domain participant 'X'"),
        (("delete-subscriber", "T"), 4, "there is no shared subscriber 'T'"),
        (("get", "status", "Nothing"), 4, "there is no queue 'Nothing'"),
        (("get", "data", "Nothing"), 4, "there is no queue 'Nothing'"),
        (("get", "messages", "Nothing"), 4, "there is no queue 'Nothing'"),
        (("get", "messages", "Nothing", "--select", "1 ="), 2, "selector, column 4: it ends too early"),
        (("flush-queue", "Nothing", "--select", "x"), 2, "selector, column 1: there is no status 'x'"),
        (
            ("get", "status", "--target", "Else*"),
            8,
            "no service named 'Else*' answered\n`qsctl get data` lists the services.\n",
        ),
        (("get", "status", "--timeout", "soon"), 2, "--timeout: 'soon' is not a duration"),
    ],
)
def test_a_mistake_is_reported_on_standard_error(
    qsctl: Shell, arguments: Sequence[str], status: int, message: str
) -> None:
    outcome = qsctl(*arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_the_status_of_a_queue_in_every_format(qsctl: Shell) -> None:
    qsctl("create-queue", "Orders")
    qsctl("produce", "Orders", "--text", "a", "--text", "b")
    table = qsctl("get", "status").out.splitlines()
    assert table[0].split()[:4] == ["Queue", "Held", "With", "consumers"]
    assert table[2].split()[:4] == ["DomainParticipant/SharedSubscriber/Orders", "2", "0", "2"]
    (first,) = qsctl("get", "status", "-o", "json").document
    assert first["queue_name"] == "DomainParticipant/SharedSubscriber/Orders"
    assert first["current_message_count"] == first["received_message_count"] == 2
    assert first["enqueue_throughput"]["publication_period_metrics"]["period_ms"] == 5000
    (line,) = qsctl("get", "status", "Orders", "-o", "jsonl").out.splitlines()
    assert json.loads(line)["received_message_count"] == 2
    (row,) = csv.DictReader(io.StringIO(qsctl("get", "status", "-o", "csv").out))
    assert (row["received_message_count"], row["current_unacknowledged_message_count"]) == ("2", "2")
    assert "received_message_count" in qsctl("get", "status", "Orders").out


def test_change_counts_since_the_status_was_last_read(qsctl: Shell) -> None:
    qsctl("create-queue", "Orders")
    for total in (1, 2):
        qsctl("produce", "Orders", "--text", str(total))
        (status,) = qsctl("get", "status", "-o", "json").document
        assert (status["received_message_count"], status["received_message_count_change"]) == (total, 1)
    (status,) = qsctl("get", "status", "-o", "json").document
    assert status["received_message_count_change"] == 0


def test_the_data_of_the_service(qsctl: Shell) -> None:
    qsctl("create-queue", "Orders", "--topic", "T", "--type", "DDS::Octets")
    queue = {
        "queue_name": "DomainParticipant/SharedSubscriber/Orders",
        "topic_name": "T",
        "resource": ORDERS,
        "type_name": "DDS::Octets",
        "is_dead_letter": False,
        "service": "qsctl",
    }
    assert qsctl("get", "data", "-o", "json").document == {
        "queues": [queue],
        "subscribers": [S],
        "participants": [P],
        "services": ["qsctl"],
    }
    assert qsctl("get", "data", "T@SharedSubscriber", "-o", "json").document == {"queues": [queue]}
    assert ORDERS in qsctl("get", "data").out


def test_messages_are_shown_and_stay(qsctl: Shell) -> None:
    qsctl("create-queue", "Orders")
    qsctl("produce", "Orders", "--text", "one", "--text", "two", "--writer-guid", "7")
    for _ in range(2):
        first, second = qsctl("get", "messages", "Orders", "-o", "json").document
    assert [first["payload"], second["payload"]] == ["one", "two"]
    assert first["identity"] == f"{'0' * 31}7:1"
    assert (first["status"], first["size_bytes"], first["attempts"]) == ("UNDELIVERED", 3, 0)
    assert first["enqueued_at"].endswith("Z")
    assert len(qsctl("get", "messages", "Orders", "--count", "1", "-o", "json").document) == 1
    table = qsctl("get", "messages", "Orders").out
    assert "UNDELIVERED" in table
    assert "two" in table
    assert qsctl("get", "messages", "Orders", "--select", "1 = 2").out == "No samples.\n"


def test_a_selector_picks_messages_to_show_and_to_flush(qsctl: Shell) -> None:
    qsctl("create-queue", "Orders")
    qsctl("produce", "Orders", *[word for name in "abc" for word in ("--text", name)], "--writer-guid", "7")
    second = (
        f"@original_sample_identity.writer_guid.value = &hex({7:032x}) "
        "AND @original_sample_identity.sequence_number = (0,2)"
    )
    (row,) = qsctl("get", "messages", "Orders", "--select", second, "-o", "json").document
    assert row["payload"] == "b"
    flushed = qsctl("flush-queue", "Orders", "--select", second)
    assert flushed.out == "OK: 1 sample removed from queue DomainParticipant/SharedSubscriber/Orders\n"
    left = qsctl("get", "messages", "Orders", "-o", "json").document
    assert [row["payload"] for row in left] == ["a", "c"]
    assert "2 samples removed" in qsctl("flush-queue", "Orders").out


def test_subscribers_come_and_go_with_their_queues(qsctl: Shell) -> None:
    assert qsctl("create-subscriber", "Billing").out == "OK: shared subscriber DomainParticipant/Billing is created\n"
    assert qsctl("create-subscriber", "Billing").status == ExitStatus.DUPLICATED
    assert qsctl("create-subscriber", "Billing", "--idempotent").status == 0
    ambiguous = qsctl("create-queue", "Orders")
    assert ambiguous.status == ExitStatus.USAGE
    assert "there are several shared subscribers" in ambiguous.err
    assert qsctl("create-queue", "Orders", "--subscriber", "Billing").status == 0
    assert qsctl("get", "status", "Orders@Billing").status == 0
    assert qsctl("delete-subscriber", "Billing").status == 0
    assert qsctl("get", "status", "-o", "json").document == []
    again = qsctl("delete-subscriber", "Billing", "--idempotent")
    assert (again.status, again.out) == (0, "OK: there is no shared subscriber 'Billing': nothing to delete\n")


def test_undeliverable_samples_go_to_the_dead_letters(qsctl: Shell) -> None:
    assert qsctl("create-queue", "Dead", "--as-dead-letter").status == 0
    assert qsctl("create-queue", "Orders", "--dead-letter", "Dead").status == 0
    qsctl("produce", "Orders", "--text", "bad")
    qsctl("consume", "Orders", "--reject")
    (dead,) = qsctl("get", "messages", "Dead", "-o", "json").document
    assert (dead["dead_letter_from"], dead["dead_letter_reason"]) == ("Orders@SharedSubscriber", "MAX_RETRIES")
    assert "Orders@SharedSubscriber (MAX_RETRIES)" in qsctl("get", "messages", "Dead").out
    refused = qsctl("delete-queue", "Dead")
    assert refused.status == ExitStatus.REFUSED


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("X", "--topic", "DCPSTopic"), "the topic is used for something else in this domain"),
        (("X", "--topic", "t" * 250), "the names of topic and subscriber are too long together"),
        (("X" * 230,), "the names of participant, subscriber and queue are too long together"),
    ],
)
def test_options_are_judged_as_files_are(qsctl: Shell, words: Sequence[str], message: str) -> None:
    """The configuration of the service would be unreadable with a queue that `qsctl serve` refuses in a file."""
    refused = qsctl("create-queue", *words)
    assert refused.status == ExitStatus.NO
    assert message in refused.err
    assert qsctl("get", "status", "-o", "json").document == []
    assert qsctl("get", "config", "-o", "xml").status == ExitStatus.DONE


def test_a_name_may_be_as_long_by_a_command_as_in_a_file(qsctl: Shell) -> None:
    xml = SNIPPET.replace('name="Orders"', f'name="{"n" * 150}"')
    assert qsctl("create-queue", "--xml", xml).status == ExitStatus.DONE


def test_raw_commands_and_their_exit_statuses(qsctl: Shell) -> None:
    body = 'str://"' + " ".join(SNIPPET.split()) + '"'
    assert qsctl("send", "CREATE", "*", S, body).status == 0
    assert qsctl("send", "create", "*", S, body).status == ExitStatus.DUPLICATED
    other = body.replace("<max_delivery_retries>3<", "<max_delivery_retries>4<")
    exists = qsctl("send", "CREATE", "*", S, other, "-o", "json")
    assert (exists.status, exists.document[0]["return_code"]) == (ExitStatus.ALREADY_EXISTS, "ALREADY_EXISTS")
    qsctl("produce", "Orders", "--text", "a", "--text", "b")
    replies = qsctl("send", "GET", "*", f"{ORDERS}/message", "-o", "json").document
    assert [(reply["return_code"], reply["intermediate"]) for reply in replies] == [("OK", True), ("OK", False)]
    assert replies[0]["body"]["payload"] == b"a".hex()
    assert qsctl("send", "GET", "*", "/data").out.startswith("OK\n{")
    assert qsctl("send", "DELETE", "*", f"{ORDERS}/message", "1 = 1").out.startswith("OK: 2 samples removed")
    assert qsctl("send", "DELETE", "*", ORDERS).status == 0
    gone = qsctl("send", "DELETE", "*", ORDERS)
    assert (gone.status, gone.out[:6]) == (ExitStatus.NOT_FOUND, "ERROR:")
    assert qsctl("send", "GET", "Nobody", "/data").status == ExitStatus.NO_ANSWER
    assert qsctl("send", "UPDATE", "*", "/data").status == ExitStatus.REFUSED
    assert qsctl("send", "GET", "*", P).status == ExitStatus.REFUSED


def test_an_embedded_service_answers_shutdown(qsctl: Shell) -> None:
    outcome = qsctl("shutdown")
    assert outcome.status in (ExitStatus.DONE, ExitStatus.REFUSED)
    assert qsctl("send", "SHUTDOWN", "*").status == outcome.status
    assert qsctl("get", "status").status == 0
