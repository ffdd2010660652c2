"""The runner of sweeps and searches on Spark.

The scenario is sent once, in the code of the task, which Spark broadcasts if it is large, with the content of its
traces and recordings for machines that lack these files. A task gets its own piece, as a column of its row. The jobs of
a window are submitted by threads; Spark works on the first one first, so that no slot waits for the end of a job
(`runner.JobWindow`).
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from qsctl.errors import Unavailable
from qsctl.sim.scenario.scenario import Scenario
from qsctl.summary.spark.executors import reports_of, self_report
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.internals import is_connected
from qsctl.summary.spark.session import SparkOptions, runs_here, spark_session
from qsctl.summary.sweeps._carried import CarriedScenario
from qsctl.summary.sweeps._pieces import DonePiece, PieceAnswer, TaskPiece, ended, piece_of, piece_text, work
from qsctl.summary.sweeps.runner import Give, JobWindow, Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPLITS: Final = re.compile(r"splits=(?:Some\()?(?P<count>\d+)")
_ANSWER: Final = "struct<seconds double, is_warm boolean, content binary, problem string, error_number int>"
_POLL_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 2.0
"""Seconds after which the registered executors are counted again."""
_JOBS_MAX: Final = 256
"""Largest number of threads that wait for jobs; the window has about eight jobs for any number of slots."""


class SparkRunner(Runner):
    """A runner of tasks of one scenario on Spark."""

    jobs_ahead = 2

    def __init__(
        self,
        scenario: Scenario,
        options: SparkOptions | None = None,
        *,
        spark: SparkSession | None = None,
        variants: Iterable[Scenario] = (),
    ) -> None:
        """Open the session; unless tasks run in processes of this machine, check that the executors can run them.

        Args:
            scenario: the scenario to simulate.
            options: master and settings of Spark.
            spark: a session of the caller, to use instead.
            variants: scenarios of points, whose files are also sent, as for `CarriedScenario.elsewhere`.

        Raises:
            NotFound: a trace or a recording does not exist.
            InvalidInput: traces and recordings are too large to be sent to executors.
            Unavailable: an executor has another version of qsctl or of Python, or lacks qsctl; the message names it.
        """
        from pyspark.sql.functions import udf

        # Java only schedules tasks, and Python simulates; fast compilation of Java matters most.
        self._spark = spark or spark_session(options, brief=True)
        self.slots = self._slots_now()
        check_executors(self._spark, self.slots)
        is_here = runs_here(self._spark)
        carried = CarriedScenario.here(scenario) if is_here else CarriedScenario.elsewhere(scenario, variants)
        # One function for all jobs, so that it is sent once. A row is a piece; its own overhead is negligible.
        self._work = udf(_worker(carried), _ANSWER, useArrow=False)

    def ended(self, give: Give) -> Iterator[DonePiece]:
        """Simulate the pieces that `give` returns, and yield each when it ends.

        Raises:
            InvalidInput: a scenario cannot be simulated, with the point in the message; or the folder of a sweep cannot
                be written.
            Unavailable: Spark ended, or cannot run the tasks.
        """
        window = JobWindow()
        tag = f"qsctl-{secrets.token_hex(8)}"
        jobs: dict[Future[list[PieceAnswer]], tuple[int, list[TaskPiece]]] = {}
        threads = ThreadPoolExecutor(_JOBS_MAX)
        looked = time.monotonic()
        try:
            while True:
                while (job := window.next_job(give, self.slots)) is not None:
                    jobs[threads.submit(self._answers, job[1], tag)] = job
                if not jobs:
                    return
                ready = wait(jobs, _POLL_SECONDS, FIRST_COMPLETED).done  # an interrupt ends the wait
                if time.monotonic() - looked > _LOOK_SECONDS:
                    self.slots = self._slots_now()
                    looked = time.monotonic()
                for done in ready:
                    number, pieces = jobs.pop(done)
                    with spark_faults():
                        answers = done.result()
                    window.end(number, sum(answer.seconds for answer in answers))
                    for piece, answer in zip(pieces, answers, strict=True):
                        yield ended(piece, answer)
        finally:
            if jobs:
                with suppress(Exception):  # Java has ended, which was reported before
                    self._spark.interruptTag(tag)
            threads.shutdown(wait=False, cancel_futures=True)

    def _answers(self, pieces: Sequence[TaskPiece], tag: str) -> list[PieceAnswer]:
        """Return the answers of one job, in the order of its pieces.

        Args:
            pieces: one for each task.
            tag: Spark's job tag, by which the jobs can be cancelled.
        """
        from pyspark.sql.functions import lit, split

        self._spark.addTag(tag)
        numbers = self._spark.range(0, len(pieces), 1, len(pieces))
        texts = split(lit("\n".join(map(piece_text, pieces))), "\n")
        rows = numbers.select(numbers["id"], self._work(texts[numbers["id"]]).alias("answer")).collect()
        return [_answer(row["answer"]) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def _slots_now(self) -> int:
        """Return the number of tasks that the registered executors run at once."""
        if not is_connected(self._spark):
            return max(1, int(self._spark.sparkContext.defaultParallelism))
        with spark_faults():
            # The default number of splits of a range is the number of tasks that run at once, also on a remote session.
            # Only the plan is requested: a job would wait for the tasks of the window.
            plan = str(self._spark.sql("EXPLAIN SELECT * FROM range(100000)").head())
        splits = _SPLITS.search(plan)
        return max(1, int(splits["count"])) if splits else self.slots


def _worker(carried: CarriedScenario) -> Callable[[str], Any]:
    def run(text: str) -> Any:
        answer = work(carried.scenario, piece_of(text), placed=carried.placed)
        return answer.seconds, answer.is_warm, answer.content, answer.problem, answer.error_number

    return run


def _answer(row: Any) -> PieceAnswer:
    return PieceAnswer(row["seconds"], row["is_warm"], bytes(row["content"]), row["problem"], row["error_number"])


def check_executors(spark: SparkSession, slots: int) -> None:
    """Check Python and qsctl of the executors, unless they are processes of this machine's own Python.

    Raises:
        Unavailable: an executor has another version of either, or lacks it; the message names it and its versions.
    """
    here = self_report()
    if runs_here(spark):
        return
    with spark_faults():
        reports = reports_of(spark.range(0, slots, 1, slots))
    _check_reports(here, reports)


def _check_reports(here: dict[str, str], reports: Sequence[dict[str, str]]) -> None:
    wanted = here["python"].rpartition(".")[0]
    for each in sorted(reports, key=lambda report: report["host"]):
        place = f"the executor on {each['host']}"
        if each["python"].rpartition(".")[0] != wanted:
            raise Unavailable(
                f"{place} runs Python {each['python']}; this process runs {here['python']}",
                remedy="Set spark.pyspark.python to a Python of the same minor version there, with qsctl installed.",
            )
        if each["version"] != here["version"]:
            what = f"cannot run qsctl ({each['problem']})" if each["problem"] else f"has qsctl {each['version']}"
            raise Unavailable(
                f"{place} {what}; this process has qsctl {here['version']}",
                remedy=f"Install qsctl {here['version']} for the Python that spark.pyspark.python names there.",
            )
