"""Options of the commands that run on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from qsctl.summary.session import SparkOptions

SPARK_PANEL = "Spark"

MasterOption = Annotated[
    str,
    typer.Option(
        "--master",
        envvar="QSCTL_SPARK_MASTER",
        help="Where Spark runs: local[*], local[4], spark://host:7077, yarn or k8s://….  [default: local[*]]",
        show_default=False,
        rich_help_panel=SPARK_PANEL,
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="A setting of Spark, as in spark.driver.memory=8g; may be repeated. QSCTL_SPARK_CONF holds several.",
        rich_help_panel=SPARK_PANEL,
    ),
]


def spark_options(master: str, conf: Sequence[str] | None) -> SparkOptions:
    """The options as the pipeline takes them.

    Raises:
        UsageError: a setting is not NAME=VALUE.
    """
    from qsctl.summary.session import SparkOptions, parse_conf

    return SparkOptions(master=master, conf=parse_conf(conf or ()))
