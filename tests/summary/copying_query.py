"""A query that copies the messages of a recording, as a program of its own that can be killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from qsctl.summary.spark.java import find_java

COPIED = """
import sys
from pyspark.sql import SparkSession
from tests.summary.registered import register
recording, out, checkpoint, trigger = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1")
         .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
register(spark)
rows = spark.readStream.format("qsctl").load(recording)
query = (rows.writeStream.format("parquet").option("checkpointLocation", checkpoint)
         .trigger(**({"availableNow": True} if trigger == "now" else {"processingTime": trigger})).start(out))
query.awaitTermination()
print("ended")
"""


def copying(recording: Path, out: Path, checkpoint: Path) -> list[str]:
    """Return the command, less its trigger: a time, or `now` for all that there is."""
    return [sys.executable, "-c", COPIED, str(recording), str(out), str(checkpoint)]


def environment_of_queries() -> dict[str, str]:
    """Return the variables with which the command finds Java and this repository."""
    return {
        **os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(Path(__file__).parents[2]),
    }  # fmt: skip
