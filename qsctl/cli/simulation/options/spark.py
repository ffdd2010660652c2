"""Options that choose where simulations are computed: on Spark, or in processes of this machine."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli.caller import program_caller
from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import Interrupted
from qsctl.processors import processors

if TYPE_CHECKING:
    from qsctl.sim.scenario.scenario import Scenario
    from qsctl.summary.spark.session import SparkOptions
    from qsctl.summary.sweeps.runner import Runner

SPARK_PANEL = "Spark"


@dataclass(frozen=True)
class ClusterOptions(OptionGroup):
    """The options of the Spark cluster that a command computes on."""

    master: Annotated[
        str,
        typer.Option(
            envvar="QSCTL_SPARK_MASTER",
            help="Spark to compute on: local[*], local[4], spark://host:7077, sc://host, yarn or k8s://….",
            show_default="local[*]",
            rich_help_panel=SPARK_PANEL,
        ),
    ] = ""
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Setting of Spark, as in spark.driver.memory=8g; may be repeated. QSCTL_SPARK_CONF holds several.",
            rich_help_panel=SPARK_PANEL,
        ),
    ] = None

    def spark_options(self) -> SparkOptions:
        """Return the options as `SparkOptions`.

        Raises:
            UsageError: a setting is not NAME=VALUE.
        """
        from qsctl.summary.spark.session import SparkOptions, parse_conf

        return SparkOptions(master=self.master, conf=parse_conf(self.conf or ()))

    def runner(self, scenario: Scenario) -> AbstractContextManager[Runner | None]:
        """Return the runner of a scenario's simulations; None for Spark."""
        del scenario
        return nullcontext()


@dataclass(frozen=True)
class TaskOptions(ClusterOptions):
    """The options of a command that computes on this machine without Java, or on Spark if requested."""

    spark: Annotated[
        bool,
        typer.Option(
            "--spark",
            help="Compute on Spark, as with --master or --conf, instead of on this machine without Java.",
            rich_help_panel=SPARK_PANEL,
        ),
    ] = False

    @property
    def wants_spark(self) -> bool:
        """Return whether an option or an environment variable requests Spark."""
        from qsctl.summary.spark.session import CONF_VARIABLE, MASTER_VARIABLE

        named = (self.master, self.conf, os.environ.get(MASTER_VARIABLE), os.environ.get(CONF_VARIABLE))
        return self.spark or any(named)

    def spark_asked_for(self) -> SparkOptions | None:
        """Return the options as `SparkOptions`; None if Spark is not requested.

        Raises:
            UsageError: a setting is not NAME=VALUE.
        """
        return self.spark_options() if self.wants_spark else None

    def runner(self, scenario: Scenario) -> AbstractContextManager[Runner | None]:
        """Return the runner of a scenario's simulations; None for Spark."""
        if self.wants_spark:
            return super().runner(scenario)
        from qsctl.summary.sweeps.local_runner import LocalRunner

        return LocalRunner(scenario, processors())


@dataclass(frozen=True)
class LocalProcesses(TaskOptions):
    """The options of a calling program: processes of this machine without Java, unless it requests Spark."""

    workers: int = 1

    def runner(self, scenario: Scenario) -> AbstractContextManager[Runner | None]:
        """Return the runner of a scenario's simulations in processes of this machine."""
        from qsctl.summary.sweeps.local_runner import LocalRunner

        return LocalRunner(scenario, self.workers, _end_where_asked)


def _end_where_asked() -> None:
    """End the work if the calling program requests it.

    Raises:
        Interrupted: it does.
    """
    program = program_caller()
    if program is not None and program.should_stop():
        raise Interrupted("stopped by the program")
