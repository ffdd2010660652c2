"""Options of the commands that run on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from qsctl.summary.spark.session import SparkOptions

SPARK_PANEL = "Spark"


@dataclass(frozen=True)
class ClusterOptions(OptionGroup):
    """The Spark that a command computes on."""

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
        """Return the options as the pipeline has them.

        Raises:
            UsageError: a setting is not NAME=VALUE.
        """
        from qsctl.summary.spark.session import SparkOptions, parse_conf

        return SparkOptions(master=self.master, conf=parse_conf(self.conf or ()))
