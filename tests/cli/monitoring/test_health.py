"""`check service`, `check dead-letters`, `wait`, `doctor --service`: what a script and a monitoring system read."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from msgspec import structs

from qsctl.cli.help import _service_findings
from qsctl.cli.help._finding import Finding
from qsctl.cli.monitoring import _check_service
from qsctl.cli.monitoring._check_service import of_services
from qsctl.cli.monitoring._nagios import CheckStatus
from qsctl.cli.monitoring.service_look import ServiceLook
from qsctl.cli.service_options import TargetOptions
from qsctl.client.administration import FromService
from qsctl.core.admin.reply import ServiceData
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.statistics._counters import QueueStatistics
from qsctl.core.statistics.status import CurrentCounts, MemberStatus, ReplicationStatus, SharedReaderQueueStatus
from qsctl.errors import ExitStatus
from qsctl.programs.service import Service
from tests.cli.shell import Shell
from tests.dds.domains import claim_domain, release_domain
from tests.patience import PATIENCE_S


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    """Three orders, one of them dead."""
    shell = Shell(tmp_path / "state")
    for arguments in (
        ("create-queue", "Dead", "--as-dead-letter"),
        ("create-queue", "Orders", "--dead-letter", "Dead"),
        ("produce", "Orders", "--text", "1", "--text", "2", "--text", "3"),
        ("consume", "Orders", "--reject"),
    ):
        assert shell(*arguments).status == 0
    return shell


def test_service_that_answers_is_well(qsctl: Shell) -> None:
    done = qsctl("check", "service")
    assert done.status == CheckStatus.OK
    assert done.out.startswith("OK: qsctl: answer_ms is ")


@pytest.mark.parametrize(
    ("measure", "value"),
    [("message_count", 3), ("dead_letter_count", 1), ("waiting_count", 0), ("undeliverable_count", 0)],
)
def test_figure_of_a_service_against_thresholds(qsctl: Shell, measure: str, value: int) -> None:
    done = qsctl("check", "service", "-m", measure, "-w", "0", "-c", "2", "-o", "json")
    assert done.document["values"] == [{"label": "qsctl", "value": value}]
    assert done.status == (
        CheckStatus.OK if value == 0 else CheckStatus.WARNING if value <= 2 else CheckStatus.CRITICAL
    )


def test_missing_service_is_critical_whatever_the_thresholds(qsctl: Shell) -> None:
    done = qsctl("check", "service", "--expect", "2", "-w", "100000")
    assert done.status == CheckStatus.CRITICAL
    assert "1 of 2 services answered" in done.out
    domain = claim_domain()
    try:
        found = of_services("answer_ms", TargetOptions(service=f"dds:{domain}", timeout="200ms"), 1)
    finally:
        release_domain(domain)
    assert found.values == ()
    assert found.troubles == (f"no service answered in domain {domain} within 0.2 s",)


def test_dead_letters_warn_by_default(qsctl: Shell) -> None:
    done = qsctl("check", "dead-letters")
    assert done.status == CheckStatus.WARNING
    assert "Dead: current_message_count is 1, allowed is 0" in done.out
    assert qsctl("check", "dead-letters", "Dead", "-w", "5").status == CheckStatus.OK
    assert qsctl("check", "dead-letters", "-w", "5", "-c", "0").status == CheckStatus.CRITICAL
    assert qsctl("requeue", "Dead").status == 0
    assert qsctl("check", "dead-letters").status == CheckStatus.OK


def test_oldest_sample_has_an_age(qsctl: Shell) -> None:
    assert qsctl("check", "dead-letters", "-m", "oldest_age_s", "-w", "1000000").status == CheckStatus.OK
    assert qsctl("check", "queue", "Orders", "-m", "oldest_age_s", "-c", "@0:1000000").status == CheckStatus.CRITICAL
    assert qsctl("flush-queue", "Orders").status == 0
    done = qsctl("check", "queue", "Orders", "-m", "oldest_age_s", "-c", "0", "-o", "json")
    assert done.document["values"][0]["value"] == 0


def test_what_cannot_be_checked_is_unknown(qsctl: Shell) -> None:
    for arguments in (("dead-letters", "Orders"), ("dead-letters", "-m", "size"), ("service", "-m", "size")):
        assert qsctl("check", *arguments).status == CheckStatus.UNKNOWN
    assert qsctl("delete-subscriber", "SharedSubscriber").status == 0
    assert "no queue holds dead letters" in qsctl("check", "dead-letters").out


def test_wait_ends_when_the_condition_holds(qsctl: Shell, tmp_path: Path) -> None:
    consumed: list[bytes] = []

    def consume() -> None:
        # Not by a command: two at once in one process would share its standard streams.
        time.sleep(0.05)
        with Service.embedded(tmp_path / "state") as service:
            for sample in service.consume("Orders"):
                sample.acknowledge()
                consumed.append(sample.payload)

    consumer = threading.Thread(target=consume)
    consumer.start()
    done = qsctl(
        "wait", "Orders", "--until", "current_message_count = 0", "--timeout", f"{PATIENCE_S}s", "--interval", "20ms"
    )
    consumer.join()
    assert consumed == [b"2", b"3"]
    assert done.status == ExitStatus.DONE
    assert "current_message_count is 0" in done.out


def test_wait_that_timed_out_names_what_is_missing(qsctl: Shell) -> None:
    done = qsctl("wait", "Orders", "--until", "current_message_count=0", "--timeout", "0s")
    assert done.status == ExitStatus.NO_ANSWER
    assert "current_message_count of queue DomainParticipant/SharedSubscriber/Orders is 2" in " ".join(done.err.split())
    assert "there is no queue 'None'" in qsctl("wait", "None", "--timeout", "0s").err


def test_wait_for_an_empty_queue_is_over_when_nothing_is_held_and_nothing_waits(qsctl: Shell) -> None:
    wait = ("wait", "Orders", "--empty", "--timeout", "0s")
    assert qsctl(*wait).status == ExitStatus.NO_ANSWER
    assert qsctl("consume", "Orders", "-n", "0").status == ExitStatus.DONE
    done = qsctl(*wait, "-o", "json")
    assert done.status == ExitStatus.DONE
    assert json.loads(done.out)["values"] == {"current_message_count": 0, "current_waiting_message_count": 0}


def test_every_condition_has_to_hold(qsctl: Shell) -> None:
    wait = ("wait", "Orders", "--timeout", "0s", "--until", "current_message_count>=2")
    assert qsctl(*wait).status == ExitStatus.DONE
    assert qsctl(*wait, "--until", "current_sent_message_count!=0").status == ExitStatus.NO_ANSWER
    assert qsctl("wait", "Orders", "--timeout", "0s").status == ExitStatus.DONE


@pytest.mark.parametrize("condition", ["size=0", "current_message_count", "current_message_count=many", "queue_name=0"])
def test_wrong_condition_is_a_usage_error(qsctl: Shell, condition: str) -> None:
    done = qsctl("wait", "Orders", "--until", condition, "--timeout", "1m")
    assert done.status == ExitStatus.USAGE
    assert "--until" in done.err


def test_doctor_looks_at_a_service(qsctl: Shell, tmp_path: Path) -> None:
    done = qsctl("doctor", "--service", "embedded:")
    assert done.status == ExitStatus.DONE
    assert "no consumer" not in done.out, "between commands there is none"
    for found in ("1 dead letter", "2 queues, 3 samples", "The service is well."):
        assert found in done.out
    done = qsctl("doctor", "--service", "embedded:", "--state-dir", str(tmp_path / "none"), "-o", "json")
    assert done.status == ExitStatus.NO
    assert not (tmp_path / "none").exists(), "looking makes no state"
    (finding,) = done.document["findings"]
    assert (finding["good"], finding["needed"]) == (False, True)


def test_doctor_finds_a_full_queue_and_lost_samples(qsctl: Shell) -> None:
    for arguments in (
        ("delete-subscriber", "SharedSubscriber"),
        ("create-subscriber", "SharedSubscriber"),
        ("create-queue", "Small", "--max-count", "1"),
        ("produce", "Small", "--text", "1", "--text", "2"),
        ("consume", "Small", "--reject"),
    ):
        qsctl(*arguments)
    shown = qsctl("doctor", "--service", "embedded:").out
    assert "1 sample given up, and no dead-letter queue" in shown


def test_metrics_are_listed_and_files_written(qsctl: Shell, tmp_path: Path) -> None:
    names = [row["name"] for row in qsctl("metrics", "list", "-o", "json").document]
    assert {"qsctl_queue_events_total", "qsctl_queue_samples", "qsctl_refused_messages_total"} <= set(names)
    file = tmp_path / "dashboard.json"
    assert qsctl("metrics", "dashboard", "--out", str(file)).status == 0
    assert json.loads(file.read_text())["title"] == "qsctl queues"
    assert qsctl("metrics", "dashboard").out == file.read_text()
    assert qsctl("metrics", "dashboard", "--out", str(file)).status == ExitStatus.USAGE
    assert qsctl("metrics", "alerts").out.startswith("# Alert rules")


def test_service_that_is_no_member_of_a_queue_that_works_is_no_lack_of_a_quorum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was removed, or joins and is to be added, and is a member of other queues perhaps."""

    def replica(service: str, *listed: str, has_quorum: bool) -> FromService[SharedReaderQueueStatus]:
        members = tuple(MemberStatus(name, True) for name in ("B", "C", *listed))
        replication = ReplicationStatus("learner", 1, "", 2, 2, 0, has_quorum, 0, 9, 9, "", members)
        counts = CurrentCounts(0, 0, 0, 0)
        status = QueueStatistics(SharedReaderQueueSettings("Q", "T"), 0).status(0, "P/S/Q", counts)
        return FromService(service, structs.replace(status, replication=replication))

    def troubles(*statuses: FromService[SharedReaderQueueStatus]) -> tuple[list[str], list[Finding]]:
        look = ServiceLook(1.0, [FromService("A", ServiceData(()))], statuses, (), ())
        monkeypatch.setattr(_check_service, "look_at", lambda _: look)
        monkeypatch.setattr(_service_findings, "look_at", lambda _: look)
        options = TargetOptions(service="dds:0")
        found = [each for each in _service_findings.service_findings(options) if each.part.startswith("queue")]
        return list(of_services("answer_ms", options, 1).troubles), found

    removed, member = replica("A", has_quorum=False), replica("B", has_quorum=False)
    for outside in (removed, replica("A", "A", has_quorum=False)):
        lacking, findings = troubles(outside, replica("B", has_quorum=True))
        assert lacking == []
        assert (findings[0].found, findings[0].needed) == ("A is not among its members", False)
    lacking, findings = troubles(removed, member)
    assert lacking == ["queue P/S/Q of service A has no quorum", "queue P/S/Q of service B has no quorum"]
    assert [each.needed for each in findings] == [True, True]
    assert troubles(member, replica("C", has_quorum=True))[0] == ["queue P/S/Q of service B has no quorum"]
