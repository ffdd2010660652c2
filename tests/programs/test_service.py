"""`qsctl.Service`: the verbs of the commands as methods, on an embedded service."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import qsctl
from qsctl.cli.administer.get_results import Statuses
from qsctl.errors import ExitStatus, InvalidInput, NoAnswer, NotFound, QsctlError, Refused, UsageError
from qsctl.instant import SECOND_NS
from tests import examples


@pytest.fixture
def service(tmp_path: Path) -> Iterator[qsctl.Service]:
    with qsctl.Service.embedded(tmp_path / "state") as service:
        yield service


def with_dead_letters(service: qsctl.Service) -> None:
    service.create_queue("Dead", as_dead_letter=True)
    service.create_queue("Orders", dead_letter="Dead", max_delivery_retries=1)


def payloads(service: qsctl.Service, queue: str) -> list[object]:
    return [row["payload"] for row in service.messages(queue)]


def test_rows_are_those_of_the_command(service: qsctl.Service) -> None:
    service.create_queue("Orders", max_count=5)
    service.produce("Orders", ["first", b"second"])
    (row,) = service.status("Orders")
    assert set(row) == set(Statuses.field_help) - {"consumers"}
    assert (row["current_message_count"], row["received_message_count"]) == (2, 2)
    assert payloads(service, "Orders") == ["first", "second"]
    assert [each["queue_name"] for each in service.data()] == ["DomainParticipant/SharedSubscriber/Orders"]


def test_rejected_samples_become_dead_letters_and_are_requeued(service: qsctl.Service) -> None:
    with_dead_letters(service)
    service.produce("Orders", "poison")
    flags = []
    for sample in service.consume("Orders"):
        flags.append(sample.redelivered)
        sample.reject()
    assert len(flags) == 2
    assert payloads(service, "Dead") == ["poison"]
    assert service.requeue("Dead", reason="LIFESPAN").to_dict() != service.requeue("Dead", dry_run=True).to_dict()
    assert [each["moved_count"] for each in service.requeue("Dead")] == [1]
    assert payloads(service, "Orders") == ["poison"]


def test_samples_are_moved_exported_flushed_and_imported(service: qsctl.Service, tmp_path: Path) -> None:
    service.create_queue("Orders")
    service.create_queue("Archive")
    service.produce("Orders", ["a", "b", "c"])
    service.move("Orders", "Archive", limit=2)
    assert (payloads(service, "Orders"), payloads(service, "Archive")) == (["c"], ["a", "b"])
    assert service.export("Archive", tmp_path / "a.jsonl").content.sample_count == 2
    assert service.flush_queue("Archive", dry_run=True)["return_code"] == ["DRY_RUN"]
    assert len(payloads(service, "Archive")) == 2
    service.flush_queue("Archive")
    assert payloads(service, "Archive") == []
    service.import_(tmp_path / "a.jsonl", "Archive")
    assert payloads(service, "Archive") == ["a", "b"]


def test_a_file_is_planned_and_applied(service: qsctl.Service, tmp_path: Path) -> None:
    service.create_queue("Orders")
    file = tmp_path / "wanted.xml"
    file.write_text(service.configuration().content.xml(), encoding="utf-8")
    assert service.plan(file).exit_status == ExitStatus.DONE
    service.delete_queue("Orders")
    assert service.plan(file).exit_status == ExitStatus.NO
    service.apply(file)
    assert service.data()["queue_name"] == ["DomainParticipant/SharedSubscriber/Orders"]


def test_subscribers_are_created_and_deleted(service: qsctl.Service) -> None:
    service.create_subscriber("Billing")
    service.create_queue("Orders", subscriber="Billing")
    service.delete_subscriber("Billing")
    assert len(service.data()) == 0


def test_a_recording_lasts_as_long_as_its_block(service: qsctl.Service, tmp_path: Path) -> None:
    service.create_queue("Orders")
    with service.record(tmp_path / "recorded") as started:
        assert started["is_complete"] == [False]
        service.produce("Orders", "a")
    assert service.record_status()["is_complete"] == [True]
    assert (tmp_path / "recorded" / "run.json").exists()


def test_time_is_that_of_the_given_clock(tmp_path: Path) -> None:
    now_ns = [1_800_000_000 * SECOND_NS]
    with qsctl.Service.embedded(tmp_path / "state", now=lambda: now_ns[0]) as service:
        with_dead_letters(service)
        service.produce("Orders", "late", lifespan="1h")
        assert payloads(service, "Orders") == ["late"]
        now_ns[0] += 3601 * SECOND_NS
        assert payloads(service, "Dead") == ["late"]


def test_wait_lets_other_threads_work(service: qsctl.Service) -> None:
    service.create_queue("Orders")
    service.produce("Orders", "a")
    waits = threading.Event()

    def consume() -> None:
        waits.wait(30)
        for sample in service.consume("Orders", count=1):
            sample.acknowledge()

    other = threading.Thread(target=consume)
    other.start()
    waits.set()
    waited = service.wait("Orders", until="current_message_count=0", timeout="30s", interval="10ms")
    other.join()
    assert waited["values"] == [{"current_message_count": 0}]


def test_wait_ends_without_an_answer_in_time(service: qsctl.Service) -> None:
    service.create_queue("Orders")
    with pytest.raises(NoAnswer, match=r"current_message_count of queue .* is 0, wanted is current_message_count>0"):
        service.wait("Orders", until="current_message_count>0", timeout="50ms", interval="10ms")


def test_threads_use_one_service_at_once(service: qsctl.Service) -> None:
    service.create_queue("Orders")
    failed: list[BaseException] = []

    def produce(number: int) -> None:
        try:
            for at in range(10):
                service.produce("Orders", f"{number}/{at}")
                service.status()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
    assert sorted(map(str, payloads(service, "Orders"))) == sorted(f"{n}/{at}" for n in range(4) for at in range(10))


def test_a_sample_is_answered_once_and_before_the_next(service: qsctl.Service) -> None:
    service.create_queue("Orders")
    service.produce("Orders", ["a", "b"])
    samples = service.consume("Orders")
    first = next(samples)
    with pytest.raises(UsageError, match="neither acknowledged nor rejected"):
        next(samples)
    first.acknowledge()
    with pytest.raises(UsageError, match="before"):
        first.reject()


def test_an_unanswered_sample_returns_when_the_service_is_closed(tmp_path: Path) -> None:
    with qsctl.Service.embedded(tmp_path) as service:
        service.create_queue("Orders", persistent=True)
        service.produce("Orders", "a")
        sample = next(service.consume("Orders"))
    with pytest.raises(Refused, match="is closed"):
        sample.acknowledge()
    with qsctl.Service.embedded(tmp_path) as service:
        assert [(row["payload"], row["redelivered"]) for row in service.messages("Orders")] == [("a", True)]


def test_a_service_that_a_program_leaves_open_is_closed_at_its_end(tmp_path: Path) -> None:
    """At the end of the interpreter nothing can be written any more: a traceback, and counters that begin anew."""
    program = f"""
import qsctl

service = qsctl.Service.embedded({str(tmp_path)!r})
service.create_queue("Orders", persistent=True)
service.produce("Orders", ["a", "b"])
sample = next(service.consume("Orders"))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    with qsctl.Service.embedded(tmp_path) as service:
        (row,) = service.status()
        assert (row["received_message_count"], row["current_message_count"]) == (2, 2)


def test_a_closed_service_refuses_every_call(tmp_path: Path) -> None:
    service = qsctl.Service.embedded(tmp_path)
    service.close()
    service.close()
    for call in (
        service.status,
        service.data,
        lambda: service.produce("Orders", "a"),
        lambda: list(service.consume("O")),
    ):
        with pytest.raises(Refused, match="is closed"):
            call()


def test_a_directory_is_opened_once_at_a_time(tmp_path: Path) -> None:
    with (
        qsctl.Service.embedded(tmp_path),
        pytest.raises(NoAnswer, match="is using the state directory"),
    ):
        qsctl.Service.embedded(tmp_path, timeout="50ms")
    with qsctl.Service.embedded(tmp_path) as service:  # the failed one left nothing locked
        assert len(service.status()) == 0


def test_a_deleted_directory_is_an_error_of_ours_and_begins_anew(tmp_path: Path) -> None:
    place = tmp_path / "state"
    service = qsctl.Service.embedded(place)
    service.create_queue("Orders", persistent=True)
    shutil.rmtree(place)
    with pytest.raises(QsctlError):
        service.create_queue("Others", persistent=True)
    with pytest.raises(QsctlError, match="state"):  # what it held cannot be kept
        service.close()
    with pytest.raises(Refused, match="is closed"):
        service.status()
    shutil.rmtree(place, ignore_errors=True)
    with qsctl.Service.embedded(place) as service:
        assert len(service.data()) == 0


def test_a_service_is_left_in_order_when_the_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), qsctl.Service.embedded(tmp_path) as service:
        service.create_queue("Orders", persistent=True)
        service.produce("Orders", "kept")
        _ = 1 // 0
    with qsctl.Service.embedded(tmp_path) as service:
        assert payloads(service, "Orders") == ["kept"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_cout": 5}, "no setting 'max_cout'"),
        ({"max_count": -7}, "max_count is -7"),
        ({"max_count": "5"}, "max_count is '5'"),
        ({"persistent": 1}, "persistent is 1"),
        ({"when_full": "drop"}, "when_full is 'drop'"),
        ({"lifespan": "soon"}, "soon"),
        ({"max_count": 0}, "leaves no room"),
    ],
)
def test_wrong_settings_are_refused(service: qsctl.Service, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        service.create_queue("Orders", **settings)  # type: ignore[arg-type]
    assert len(service.data()) == 0


def test_settings_of_a_queue_are_the_options_of_the_command() -> None:
    from qsctl.cli.administer.queue_options import QueueOptions
    from qsctl.programs.queue_settings import QueueSettingOptions

    assert list(QueueSettingOptions.__annotations__) == [each.name for each in QueueOptions.parameters()]


def test_what_is_not_there_is_not_found(service: qsctl.Service) -> None:
    for call in (service.status, service.messages, service.delete_queue, service.flush_queue):
        with pytest.raises(NotFound):
            call("Nothing")
    assert service.delete_queue("Nothing", idempotent=True)["return_code"] == ["OK"]


def test_locations_are_those_of_the_option(tmp_path: Path) -> None:
    for location in ("redis://x", "dds:", "dds:7?colour=red", "embedded"):
        with pytest.raises(UsageError):
            qsctl.Service.connect(location)
    with pytest.raises(UsageError, match="a location or a context"):
        qsctl.Service.connect()
    with pytest.raises(NotFound):
        qsctl.Service.embedded(tmp_path, configuration=tmp_path / "none.xml")
    (tmp_path / "bad.xml").write_text("<dds>", encoding="utf-8")
    with pytest.raises(InvalidInput):
        qsctl.Service.embedded(tmp_path / "state", configuration=tmp_path / "bad.xml")


def test_a_context_names_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[contexts.lab]\nservice = "embedded:"\nstate_dir = "{tmp_path}/lab"\n', encoding="utf-8")
    monkeypatch.setenv("QSCTL_CONFIG", str(config))
    with qsctl.Service.connect(context="lab") as service:
        service.create_queue("Orders")
    assert (tmp_path / "lab" / "instance.json").exists()
    with pytest.raises(NotFound, match="nowhere"):
        qsctl.Service.connect(context="nowhere")


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with qsctl.Service.embedded(tmp_path) as service:
        with_dead_letters(service)
        service.produce("Orders", "a")
        service.delete_queue("Orders")
        with pytest.raises(QsctlError):
            service.status("Orders")
    assert capfd.readouterr() == ("", "")


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys; before = set(sys.modules); import qsctl; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [each for each in run.stdout.split() if each.partition(".")[0] == "qsctl"] == ["qsctl"]
    assert not set(run.stdout.split()) & {"typer", "rich", "numpy", "pyarrow", "msgspec", "lxml"}


@pytest.mark.parametrize("module", ["qsctl.programs.command_result", "qsctl.programs.service"])
def test_examples_of_docstrings_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples.run_all(module)
