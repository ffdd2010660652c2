"""`qsctl move`, `requeue`, `peek`, `export` and `import`: what goes where, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qsctl.cli.samples.move import _origins
from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.errors import ExitStatus
from qsctl.resource import parse_resource
from tests.cli.samples.moved import contents, error_of, held
from tests.cli.shell import Shell

GUID = "0" * 31 + "7"


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    """Five orders, of which the first three are dead letters."""
    shell = Shell(tmp_path / "state")
    for arguments in (
        ("create-queue", "Dead", "--as-dead-letter"),
        ("create-queue", "Orders", "--dead-letter", "Dead"),
        ("create-queue", "Small", "--max-count", "2"),
        ("produce", "Orders", *(f"--text={at}" for at in range(1, 6)), "--writer-guid", GUID, "--source-guid", "9"),
        ("consume", "Orders", "-n", "3", "--reject"),
    ):
        assert shell(*arguments).status == 0
    return shell


def test_dead_letters_go_back_with_their_identity(qsctl: Shell) -> None:
    done = qsctl("requeue", "Dead", "--limit", "2", "-o", "json")
    assert done.status == ExitStatus.DONE
    (target,) = done.document["targets"]
    assert (target["target"].rpartition("/")[2], target["moved_count"], target["refused_count"]) == ("Orders", 2, 0)
    back = held(qsctl, "Orders")
    assert [row["payload"] for row in back] == ["4", "5", "1", "2"]
    assert [row["identity"] for row in back[2:]] == [f"{GUID}:1", f"{GUID}:2"]
    assert not any(row["redelivered"] for row in back), "each was in one queue at any time, and rejected, not processed"
    assert contents(qsctl, "Dead") == ["3"]


def test_trial_changes_nothing(qsctl: Shell) -> None:
    before = held(qsctl, "Dead")
    done = qsctl("requeue", "Dead", "--dry-run")
    assert done.status == ExitStatus.DONE
    assert "3 samples would be requeued" in done.out
    assert held(qsctl, "Dead") == before


def test_only_chosen_dead_letters_go_back(qsctl: Shell) -> None:
    assert qsctl("requeue", "Dead", "--reason", "LIFESPAN", "-o", "json").document["targets"] == []
    assert qsctl("requeue", "Dead", "--from", "Small", "-o", "json").document["targets"] == []
    selector = f"@original_sample_identity.writer_guid.value = &hex({GUID}) AND "
    selector += "@original_sample_identity.sequence_number = (0,2)"
    assert qsctl("requeue", "Dead", "--from", "Orders", "--select", selector).status == ExitStatus.DONE
    assert contents(qsctl, "Dead") == ["1", "3"]


def test_dead_letters_of_a_queue_that_is_gone_stay(qsctl: Shell) -> None:
    assert qsctl("delete-queue", "Orders").status == 0
    done = qsctl("requeue", "Dead", "-o", "json")
    assert done.status == ExitStatus.REFUSED
    assert done.document["stayed_count"] == 3
    assert contents(qsctl, "Dead") == ["1", "2", "3"]


def test_full_queue_gets_what_fits_and_the_rest_stays(qsctl: Shell) -> None:
    done = qsctl("move", "Dead", "Small")
    assert done.status == ExitStatus.PARTLY_DONE
    assert "the queue is full" in done.out
    assert (contents(qsctl, "Small"), contents(qsctl, "Dead")) == (["1", "2"], ["3"])
    assert qsctl("move", "Dead", "Small").status == ExitStatus.REFUSED


def test_moved_sample_keeps_its_source_guid(qsctl: Shell) -> None:
    assert qsctl("move", "Orders", "Small", "--rate", "1000").status == ExitStatus.DONE
    (first, _) = qsctl("peek", "Small", "-n", "2", "-o", "json").document
    assert (first["identity"], first["source_guid"], first["flags"]) == (f"{GUID}:4", f"{9:032x}", 256)
    assert not contents(qsctl, "Orders")


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("move", "Orders", "Orders"), ExitStatus.USAGE, "are one queue"),
        (("move", "Orders", "Dead"), ExitStatus.USAGE, "accepts only dead letters"),
        (("move", "Orders", "None"), ExitStatus.NOT_FOUND, "there is no queue 'None'"),
        (("requeue", "Orders"), ExitStatus.USAGE, "is not a dead-letter queue"),
        (("move", "Orders", "Typed"), ExitStatus.USAGE, "of DDS::String"),
        (("peek", "Typed"), ExitStatus.NO, ""),
        (("export", "Orders", "-"), ExitStatus.USAGE, "export writes files"),
        (("import", "missing.jsonl", "Orders"), ExitStatus.NOT_FOUND, "there is no file missing.jsonl"),
    ],
)
def test_a_move_that_cannot_be_done_is_refused_with_the_reason(
    qsctl: Shell, arguments: tuple[str, ...], status: ExitStatus, message: str
) -> None:
    assert qsctl("create-queue", "Typed", "--type", "DDS::String").status == 0
    assert qsctl("create-queue", "Octets", "--type", "DDS::Octets").status == 0
    if "Typed" in arguments and arguments[0] == "move":
        arguments = ("move", "Octets", "Typed")
    done = qsctl(*arguments)
    assert done.status == status, done.err
    assert message in error_of(done)


def test_peek_shows_and_leaves(qsctl: Shell) -> None:
    done = qsctl("peek", "Dead")
    assert f"{GUID}:1" in done.out
    assert "Orders@SharedSubscriber" in done.out
    assert done.out.endswith("1\n")
    assert [row["attempts"] for row in held(qsctl, "Orders")] == [0, 0]
    assert [row["payload"] for row in qsctl("peek", "Dead", "-n", "9", "--after", "1", "-o", "json").document] == [
        "2",
        "3",
    ]


@pytest.mark.parametrize("name", ["samples.jsonl", "samples.parquet"])
def test_exported_samples_are_imported_as_they_were(qsctl: Shell, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert qsctl("produce", "Orders", "--file", str(octets_file(tmp_path)), "--lifespan", "1h").status == 0
    before = {queue: qsctl("peek", queue, "-n", "9", "-o", "json").document for queue in ("Orders", "Dead")}
    for queue in ("Orders", "Dead"):
        assert qsctl("export", queue, str(file)).status == ExitStatus.DONE
        assert qsctl("peek", queue, "-n", "9", "-o", "json").document == before[queue], "they stay"
        assert qsctl("export", queue, str(file)).status == ExitStatus.USAGE, "not over a file that is there"
        assert qsctl("flush-queue", queue, "--yes").status == 0
        done = qsctl("import", str(file), queue, "--keep-expiry", "--keep-flag", "-o", "json")
        assert done.status == ExitStatus.DONE, done.err
        assert done.document["targets"][0]["moved_count"] == len(before[queue])
        after = qsctl("peek", queue, "-n", "9", "-o", "json").document
        own = ("position", "enqueued_at_ns", "flags")
        assert [without(each, own) for each in after] == [without(each, own) for each in before[queue]]
        again = qsctl("import", str(file), queue, "-o", "json").document["targets"][0]
        assert again["duplicate_count"] == len(before[queue]), "what is held is not enqueued twice"
        assert again["enqueued_count"] == 0
        file.unlink()


def test_import_counts_what_was_there_already_apart(qsctl: Shell) -> None:
    lines = "".join(json.dumps({"identity": f"{GUID}:{at}", "payload": f"{at}"}) + "\n" for at in range(11, 15))
    assert qsctl("import", "-", "Orders", "--limit", "1", stdin=lines).out.startswith("1 sample imported to ")
    done = qsctl("import", "-", "Orders", stdin=lines)
    assert done.status == ExitStatus.DONE
    assert "3 samples imported to" in done.out
    assert "; 1 was there already" in done.out
    again = qsctl("import", "-", "Orders", stdin=lines).out
    assert again.startswith("0 samples imported to ")
    assert "; 4 were there already" in again
    (row,) = qsctl("import", "-", "Orders", "-o", "jsonl", stdin=lines).out.splitlines()
    assert json.loads(row)["enqueued_count"] == 0
    header, values = qsctl("import", "-", "Orders", "-o", "csv", stdin=lines).out.splitlines()
    assert dict(zip(header.split(","), values.split(","), strict=True))["duplicate_count"] == "4"


def test_queue_created_anew_has_its_own_samples_and_positions(qsctl: Shell, tmp_path: Path) -> None:
    """Its dead letters, its positions and the identities that it knew are those of another queue."""
    orders = ("create-queue", "Fresh", "--persistent", "--dead-letter", "Dead")
    write = ("produce", "Fresh", "--writer-guid", "7", "--text")
    assert qsctl(*orders).status == 0
    assert qsctl(*write, "a").status == 0
    (shown,) = qsctl("peek", "Fresh", "-o", "json").document
    file = tmp_path / "dead.jsonl"
    assert qsctl("consume", "Fresh", "--reject").status == 0
    assert qsctl("export", "Dead", str(file)).status == 0
    assert qsctl("delete-queue", "Fresh", "--yes").status == 0
    assert qsctl(*orders).status == 0
    assert "1 of 1 accepted" in qsctl(*write, "b").out
    assert contents(qsctl, "Fresh") == ["b"]
    (again,) = qsctl("peek", "Fresh", "-o", "json").document
    assert (shown["position"], again["position"]) == (1, 1)
    assert shown["incarnation"] != again["incarnation"]
    gone_on = ("peek", "Fresh", "--after", "1", "--incarnation")
    assert qsctl(*gone_on, again["incarnation"]).status == ExitStatus.NO
    refused = qsctl(*gone_on, shown["incarnation"])
    assert refused.status == ExitStatus.REFUSED
    said = error_of(refused)
    assert "position 1 is of a queue DomainParticipant/SharedSubscriber/Fresh that is gone" in said
    assert shown["incarnation"] in said
    assert again["incarnation"] in said
    assert qsctl("peek", "Fresh", "--incarnation", "7x").status == ExitStatus.USAGE
    assert qsctl("consume", "Fresh", "--reject").status == 0
    letters = qsctl("peek", "Dead", "-n", "2", "--after", "3", "-o", "json").document
    assert [each["payload"] for each in letters] == ["a", "b"]
    assert [each["dead_letter_incarnation"] for each in letters] == [shown["incarnation"], again["incarnation"]]
    done = qsctl("import", str(file), "Dead", "-o", "json").document["targets"][0]
    assert (done["enqueued_count"], done["duplicate_count"]) == (0, 4), "a letter is known for the same one"
    assert qsctl("requeue", "Dead", "--from", "Fresh").status == ExitStatus.DONE
    assert contents(qsctl, "Fresh") == ["a"]
    left = qsctl("requeue", "Dead", "--from", "Fresh", "-o", "json")
    assert left.status == ExitStatus.REFUSED
    assert left.document["targets"][0]["reason"] == "the queue holds another sample of this identity"
    assert contents(qsctl, "Dead") == ["1", "2", "3", "b"]


def octets_file(directory: Path) -> Path:
    file = directory / "octets"
    file.write_bytes(b"\x00\xff\x01")
    return file


def without(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def test_import_that_does_not_fit_names_the_line_to_continue_at(qsctl: Shell) -> None:
    lines = "".join(json.dumps({"payload": f"{at}"}) + "\n" for at in range(4))
    done = qsctl("import", "-", "Small", stdin=lines)
    assert done.status == ExitStatus.PARTLY_DONE
    assert "go on with --skip 2" in done.out
    assert qsctl("consume", "Small", "-n", "0").status == 0
    assert qsctl("import", "-", "Small", "--skip", "2", stdin=lines).status == ExitStatus.DONE
    assert contents(qsctl, "Small") == ["2", "3"]


def test_trial_of_an_import_checks_the_file_and_changes_nothing(qsctl: Shell) -> None:
    done = qsctl("import", "-", "Small", "--dry-run", stdin='{"payload": "x"}\n{"payload": "y"}\n')
    assert done.status == ExitStatus.DONE
    assert "2 samples would be imported" in done.out
    assert not contents(qsctl, "Small")


@pytest.mark.slow(beyond=5)
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "standard input, line 2: Input data was truncated"),
        ('{"payload": 7}', "standard input, line 2: payload is 7, and its encoding text"),
        ('{"payload": "x", "identity": "zz"}', "standard input, line 2: identity: 'zz' is not a sample identity"),
        ('{"payload": "x", "position": "one"}', "Expected `int`, got `str` - at `$.position`"),
        ('{"payload": "x", "flags": 65536}', "flags is 65536 Allowed: 0 to 65535."),
        ('{"payload": "x", "source_guid": "g"}', "source_guid: 'g' is not a GUID"),
        ('{"payload": "%", "payload_encoding": "base64"}', "payload is not base64"),
        ('{"payload": "x", "payload_encoding": "hex"}', "payload_encoding is 'hex' Allowed: text, base64, json."),
        ('{"payload": "x", "dead_letter_reason": "bored"}', "dead_letter_reason is 'bored'"),
        ('{"identity": "7:1"}', "missing required field `payload`"),
    ],
)
def test_wrong_line_is_one_error_and_nothing_is_imported(qsctl: Shell, line: str, message: str) -> None:
    done = qsctl("import", "-", "Small", stdin=f'{{"payload": "good"}}\n{line}\n')
    assert done.status == ExitStatus.NO
    assert message in error_of(done)
    assert not contents(qsctl, "Small")


def test_a_file_that_is_not_parquet_is_reported(qsctl: Shell, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(b"nothing of the kind")
    done = qsctl("import", str(file), "Small")
    assert done.status == ExitStatus.NO
    assert "is not a Parquet file" in error_of(done)


def test_dead_letters_go_back_to_the_queue_of_their_own_participant() -> None:
    """A dead letter names its queue by topic and subscriber; another participant may have both names."""

    def resource(participant: str, name: str, kind: str = "shared_reader_queue") -> str:
        return f"/domain_participant/{participant}/shared_subscriber/S/{kind}/{name}"

    dead = parse_resource(resource("P", "Dead", "dead_letter_shared_reader_queue"))
    twins = [QueueData("x", "Orders", resource(participant, "Orders")) for participant in ("O", "P", "Q")]
    others = [QueueData("x", "Bills", resource(participant, "Bills")) for participant in ("O", "Q")]
    alone = QueueData("x", "News", resource("O", "News"))
    assert {label: str(at) for label, at in _origins(ServiceData((*twins, *others, alone)), dead).items()} == {
        "Orders@S": resource("P", "Orders"),
        "News@S": resource("O", "News"),
    }
