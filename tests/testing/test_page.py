"""The programs of the page `testing`, run as they stand there, and what the plug-in promises around them."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.documents import page, programs
from tests.patience import PATIENCE_S
from tests.testing.two_hundred import FORMS

APPLICATION, TESTS, PROPERTY = programs(page("testing"))

MENDED = APPLICATION.replace("self.total = 0", "self.total = 0\n        self.seen = set()").replace(
    "        self.total += sample.value.amount",
    "        if sample.identity not in self.seen:\n            self.total += sample.value.amount\n"
    "        self.seen.add(sample.identity)",
)

HEAD = """
import pytest
from qsctl.client import QueueConsumer, QueueProducer

def write(service, *payloads):
    with QueueProducer("Orders", service.domain_id) as producer:
        for each in payloads:
            producer.write(each)
        assert producer.wait_for_acknowledgments() == 0
"""


def run(directory: Path, test: str, *arguments: str, application: str = APPLICATION) -> str:
    """Run pytest in a process of its own; return what it shows."""
    (directory / "billing.py").write_text(application, encoding="utf-8")
    (directory / "test_it.py").write_text(test, encoding="utf-8")
    is_found = any(each.name == "qsctl" for each in entry_points(group="pytest11"))
    plugin = () if is_found else ("-p", "qsctl.testing.plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *plugin, *arguments],
        cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    shown = run(tmp_path, TESTS, "-W", "error")
    assert "4 passed" in shown, shown


@pytest.mark.slow
def test_the_tests_of_the_page_pass_beside_each_other(tmp_path: Path) -> None:
    shown = run(tmp_path, TESTS, "-n", "2")
    assert "4 passed" in shown, shown


@pytest.mark.slow
def test_the_property_of_the_page_finds_the_planted_fault_and_passes_without_it(tmp_path: Path) -> None:
    shown = run(tmp_path, PROPERTY)
    assert "1 failed" in shown, shown
    assert "assert 84 == 42" in shown, shown
    assert re.search(r"schedule=\[<?Fault.STOPS_AFTER", shown), shown
    shown = run(tmp_path, PROPERTY, application=MENDED)
    assert "1 passed" in shown, shown


@pytest.mark.slow
def test_tests_that_fail_or_leave_clients_open_do_not_disturb_the_next(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        HEAD
        + """
LEFT = []

@pytest.mark.qsctl_queue("Orders", response_timeout="30s")
def test_leaves_a_consumer(qsctl_service):
    write(qsctl_service, b"of the first")
    LEFT.append(QueueConsumer("Orders", "SharedSubscriber", qsctl_service.domain_id))
    LEFT[0].receive(1)
    LEFT.append(qsctl_service.domain_id)
    raise RuntimeError("planted")

@pytest.mark.qsctl_queue("Orders", subscriber="Other")
@pytest.mark.qsctl_queue("Orders", subscriber="SharedSubscriber")
def test_has_its_own_queues(qsctl_service):
    assert qsctl_service.domain_id != LEFT[1]
    assert qsctl_service.samples("SharedSubscriber/Orders") == qsctl_service.samples("Other/Orders") == []
    write(qsctl_service, b"of the second")
    assert LEFT[0].receive(1, 0.2) == []
    assert qsctl_service.payloads("SharedSubscriber/Orders") == [b"of the second"]
    LEFT[0].close()

def test_has_no_queue_without_a_marker(qsctl_service):
    from qsctl.errors import NotFound
    with pytest.raises(NotFound):
        qsctl_service.messages("Orders")

@pytest.mark.qsctl_queue("Orders", max_delivery_retrys=2)
def test_is_refused(qsctl_service):
    pass
""",
    )
    assert "2 passed" in shown, shown
    assert "1 failed, 2 passed" in shown, shown
    assert "1 error" in shown, shown
    assert "RuntimeWarning: the test left 1 clients" in shown, shown
    assert "a queue has no setting 'max_delivery_retrys'" in shown, shown


@pytest.mark.slow
def test_persistent_samples_outlive_a_restart_and_others_do_not(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        HEAD
        + """
@pytest.mark.parametrize("kept", [True, False])
def test_restart(qsctl_service, kept):
    qsctl_service.create_queue("Orders", persistent=kept)
    write(qsctl_service, b"one")
    before = qsctl_service.now
    qsctl_service.restart()
    assert qsctl_service.now == before
    assert qsctl_service.payloads("Orders") == [b"one"] * kept
    write(qsctl_service, b"two")
    assert qsctl_service.payloads("Orders")[-1] == b"two"
""",
    )
    assert "2 passed" in shown, shown


@pytest.mark.slow
def test_a_consumer_that_does_not_answer_is_named_in_time(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        HEAD
        + """
from qsctl.errors import NoAnswer, UsageError

@pytest.mark.qsctl_queue("Orders")
def test_it(qsctl_service):
    write(qsctl_service, b"one")
    with QueueConsumer("Orders", "SharedSubscriber", qsctl_service.domain_id) as consumer:
        consumer.receive(1)
        with pytest.raises(NoAnswer, match="1 samples are with consumers"):
            qsctl_service.wait_until_idle(0.1)
        consumer.acknowledge_all()
        consumer.flush()
        qsctl_service.wait_until_idle()
    for wrong in ("infinite", "soon"):
        with pytest.raises(UsageError):
            qsctl_service.advance(wrong)
""",
    )
    assert "1 passed" in shown, shown


def test_the_plug_in_imports_nothing_of_qsctl_before_it_is_used(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
import sys

def test_it():
    loaded = {each for each in sys.modules if each.startswith("qsctl.")}
    assert loaded <= {"qsctl.testing", "qsctl.testing.plugin", "qsctl.lazy", "qsctl.errors", "qsctl.endings"}, loaded
    assert not {"hypothesis.strategies", "cyclonedds", "msgspec", "typer"} & set(sys.modules)
""",
        "-p", "no:hypothesispytest",
    )  # fmt: skip
    assert "1 passed" in shown, shown


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_two_hundred_tests_with_a_queue_each_pass(tmp_path: Path, form: str) -> None:
    shown = run(tmp_path, FORMS[form])
    assert "200 passed" in shown, shown
