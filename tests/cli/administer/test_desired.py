"""`qsctl plan`, `apply` and `get config` on an embedded service: exit statuses, what is shown, and what is left."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.campaigns import trials
from tests.cli.administer.killed_apply import KILLED
from tests.cli.shell import Outcome, Shell
from tests.processes import run

QUEUE = """
<shared_reader_queue name="{name}" session="main"{letters}>
  <topic_name>{name}</topic_name>
  <type_name>DDS::String</type_name>
  <queue_qos>
    <persistence><kind>{kind}</kind></persistence>
    <resource_limits>
      <queue_allocation_settings><max_count>{max_count}</max_count></queue_allocation_settings>
    </resource_limits>
  </queue_qos>
</shared_reader_queue>
"""
DEAD = """
<dead_letter_shared_reader_queue name="Dead" session="main"><topic_name>Dead</topic_name>
</dead_letter_shared_reader_queue>
"""


def queue(name: str, *, max_count: int = 10, kind: str = "VOLATILE", letters: str = "") -> str:
    reference = f' dead_letter_queue="{letters}"' if letters else ""
    return QUEUE.format(name=name, max_count=max_count, kind=kind, letters=reference)


def write(path: Path, *queues: str) -> str:
    path.write_text(
        '<dds><queuing_service name="shop"><domain_participant name="P"><domain_id>0</domain_id>'
        '<shared_subscriber name="S"><session_settings><session name="main"/></session_settings>'
        f"{''.join(queues)}</shared_subscriber></domain_participant></queuing_service></dds>"
    )
    return str(path)


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "state")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queues.xml"


def steps(outcome: Outcome) -> list[str]:
    return [f"{each['action']} {each['resource'].rpartition('/')[2]}" for each in outcome.document["differences"]]


def names(qsctl: Shell) -> set[str]:
    return {each["queue_name"].rpartition("/")[2] for each in qsctl("get", "data", "-o", "json").document["queues"]}


def test_file_is_planned_applied_and_then_there_is_nothing_to_do(qsctl: Shell, file: Path) -> None:
    first = write(file, queue("Orders"))
    planned = qsctl("plan", first)
    assert (planned.status, planned.out.splitlines()[0]) == (
        ExitStatus.NO,
        f"A service begins with {first}: none was found.",
    )
    assert not (file.parent / "state").exists()
    assert qsctl("apply", first).status == ExitStatus.DONE
    second = write(file, queue("Orders", max_count=20, letters=""), DEAD, queue("Bills", letters="Dead"))
    planned = qsctl("plan", second, "-o", "json")
    assert planned.status == ExitStatus.NO
    assert steps(planned) == ["update queue Orders", "create queue Dead", "create queue Bills"]
    assert {each["done"] for each in planned.document["differences"]} == {None}
    applied = qsctl("apply", second)
    assert applied.status == ExitStatus.DONE
    assert "max_count 10 -> 20" in applied.out
    assert applied.out.splitlines()[-1] == f"3 steps done: service shop is as {second} has it."
    again = qsctl("apply", second)
    assert (again.status, again.out) == (
        ExitStatus.DONE,
        f"Nothing to do: service shop is as {second} has it.\n",
    )
    assert qsctl("plan", second).status == ExitStatus.DONE


def test_what_is_not_in_the_file_stays_until_it_is_pruned_and_its_samples_until_forced(
    qsctl: Shell, file: Path
) -> None:
    assert qsctl("apply", write(file, queue("Orders"), queue("Bills"))).status == ExitStatus.DONE
    assert qsctl("produce", "Bills", "--text", "hello").status == ExitStatus.DONE
    fewer = write(file, queue("Orders", max_count=30))
    planned = qsctl("plan", fewer)
    assert "Not in the file, and kept (--prune deletes it):\n  P/S/Bills\n" in planned.out
    refused = qsctl("apply", fewer, "--prune", "--yes")
    assert refused.status == ExitStatus.REFUSED
    assert "Bills: holds samples" in refused.err
    assert qsctl("plan", fewer, "--prune").out.count("holds samples") == 1
    now = qsctl("get", "config", "-o", "xml").out
    assert "<max_count>30</max_count>" not in now, "nothing was done"
    assert qsctl("apply", fewer, "--prune", "--force").status == ExitStatus.DONE
    assert names(qsctl) == {"Orders"}


def test_change_that_a_live_queue_cannot_make_is_refused_with_the_way_out(qsctl: Shell, file: Path) -> None:
    assert qsctl("apply", write(file, queue("Orders"))).status == ExitStatus.DONE
    other = write(file, queue("Orders", kind="PERSISTENT"))
    refused = qsctl("apply", other, "-o", "json")
    assert refused.status == ExitStatus.REFUSED
    error = json.loads(refused.err)["error"]
    assert "persistence.kind cannot be changed in place" in error["message"]
    assert "move what is held, and delete the old one" in error["message"]
    planned = qsctl("plan", other, "--replace", "-o", "json")
    assert steps(planned) == ["delete queue Orders", "create queue Orders"]
    assert qsctl("apply", other, "--replace").status == ExitStatus.DONE
    assert qsctl("plan", other).status == ExitStatus.DONE


def test_configuration_comes_back_as_a_file_that_differs_in_nothing(qsctl: Shell, file: Path, tmp_path: Path) -> None:
    whole = write(file, queue("Orders", kind="PERSISTENT"), DEAD, queue("Bills", letters="Dead"))
    assert qsctl("apply", whole).status == ExitStatus.DONE
    back = tmp_path / "back.xml"
    back.write_text(qsctl("get", "config", "-o", "xml").out)
    assert qsctl("diff", whole, str(back)).status == ExitStatus.DONE
    assert qsctl("validate", str(back)).status == ExitStatus.DONE
    assert qsctl("plan", str(back)).status == ExitStatus.DONE
    assert qsctl("create-queue", "More", "--max-count", "7").status == ExitStatus.DONE
    assert qsctl("diff", whole, str(back)).status == ExitStatus.DONE
    back.write_text(qsctl("get", "config", "-o", "xml").out)
    differs = qsctl("diff", whole, str(back), "-o", "json")
    assert all("shared_reader_queue[More]" in each["path"] for each in differs.document["differences"])
    shown = qsctl("get", "config", "-o", "jsonl").out.splitlines()
    assert {"service": "shop", "path": "queuing_service[shop]/domain_participant[P]/domain_id", "value": "0"} in map(
        json.loads, shown
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("<dds/>", ExitStatus.NO),
        ('<dds><queuing_service name="shop"/></dds>', ExitStatus.NO),
    ],
)
def test_what_validate_refuses_plan_and_apply_refuse(qsctl: Shell, file: Path, text: str, status: ExitStatus) -> None:
    file.write_text(text)
    validated = qsctl("validate", str(file)).status
    assert qsctl("plan", str(file)).status == qsctl("apply", str(file)).status == status
    assert validated in (status, ExitStatus.DONE)
    assert not (file.parent / "state").exists()


STEPS = range(1, 7) if trials("QSCTL_TEST_EVERY_STEP", 0, 1) else (2,)
"""After which steps a process is killed; QSCTL_TEST_EVERY_STEP: after each."""


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_apply_that_is_killed_at_any_step_is_run_again_and_ends_the_same(
    qsctl: Shell, file: Path, tmp_path: Path, moment: str, step: int
) -> None:
    first = write(tmp_path / "first.xml", queue("Gone"), queue("Orders"), queue("Anew"), queue("Kept", max_count=1))
    second = write(
        tmp_path / "second.xml",
        queue("Orders", max_count=99),
        DEAD,
        queue("Bills", letters="Dead"),
        queue("Anew", kind="PERSISTENT"),
        queue("Kept", max_count=1),
    )
    assert qsctl("apply", first).status == ExitStatus.DONE
    assert qsctl("produce", "Kept", "--text", "hello").status == ExitStatus.DONE
    total = len(qsctl("plan", second, "--prune", "--replace", "-o", "json").document["differences"])
    assert total == 6
    arguments = ["apply", second, "--prune", "--replace", "--state-dir", str(tmp_path / "state")]
    killed = run([sys.executable, "-c", KILLED, str(step), moment, *arguments])
    assert killed.returncode == -signal.SIGKILL
    left = len(qsctl("plan", second, "--prune", "--replace", "-o", "json").document["differences"])
    assert left == total - (step - 1 if moment == "before" else step)
    assert qsctl("apply", second, "--prune", "--replace").status == ExitStatus.DONE
    assert qsctl("plan", second, "--prune").status == ExitStatus.DONE
    assert names(qsctl) == {"Orders", "Dead", "Bills", "Anew", "Kept"}
    assert qsctl("consume", "Kept", "-o", "json").status == ExitStatus.DONE
