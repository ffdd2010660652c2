"""Only `summary/spark/internals.py` uses what PySpark does not document."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

ROOT = Path(__file__).parents[2]
INTERNALS = "qsctl/summary/spark/internals.py"
DOCUMENTED = {
    "pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.datasource", "pyspark.sql.functions",
    "pyspark.sql.streaming.datasource", "pyspark.sql.types",
}  # fmt: skip
"""Modules of the API reference of PySpark that qsctl imports."""


def private_names() -> set[str]:
    """Return the names that PySpark's classes keep for themselves."""
    from pyspark import RDD, SparkConf, SparkContext
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

    classes = (SparkContext, SparkConf, RDD, SparkSession, DataFrame, DataFrameReader, Column)
    # What instances get is written in their methods.
    written = {name for each in classes for name in vars(each)}
    written |= {
        name for each in classes for method in vars(each).values() if isinstance(method, FunctionType)
        for name in method.__code__.co_names
    }  # fmt: skip
    return {name for name in written if name.startswith("_") and not name.startswith("__")}


def undocumented_in(text: str, private: set[str]) -> Iterator[str]:
    """Return what a module uses of PySpark beyond the API reference."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
            # A module of a package is imported by its name, too.
            imported += [
                f"pyspark.{each.name}" for each in node.names if node.module == "pyspark" if each.name.islower()
            ]
        elif isinstance(node, ast.Attribute) and node.attr in private:
            if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
                yield f".{node.attr}"
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.startswith(("pyspark.", "_PYSPARK", "PYSPARK_GATEWAY")) and node.value not in DOCUMENTED:
                yield node.value
            continue
        else:
            continue
        yield from (each for each in imported if each.partition(".")[0] == "pyspark" and each not in DOCUMENTED)


def test_only_one_module_uses_what_pyspark_does_not_document() -> None:
    private = private_names()
    assert {"_active_spark_context", "_gateway", "_jvm", "_jdf"} <= private
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / "qsctl").rglob("*.py"))
        if "pyspark" in (text := path.read_text(encoding="utf-8"))
        if (names := sorted(set(undocumented_in(text, private))))
    }
    assert found.pop(INTERNALS) == [
        "._active_spark_context", "._gateway", "._jvm", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET",
        "_PYSPARK_DRIVER_CONN_INFO_PATH", "pyspark.cloudpickle", "pyspark.java_gateway", "pyspark.sql.connect",
        "pyspark.sql.connect.session",
    ]  # fmt: skip
    assert found == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from pyspark.sql.functions import udf\nfrom pyspark import StorageLevel", []),
        ("from pyspark.serializers import CPickleSerializer", ["pyspark.serializers"]),
        ("from pyspark import cloudpickle", ["pyspark.cloudpickle"]),
        ("import pyspark.sql.connect.proto", ["pyspark.sql.connect.proto"]),
        ("spark._jvm.java.lang.System.gc()", ["._jvm"]),
        ("self._jvm = 1", []),
        ("sys.modules['pyspark.sql.connect.session']", ["pyspark.sql.connect.session"]),
    ],
)
def test_use_of_what_is_not_documented_is_found(text: str, found: list[str]) -> None:
    assert [*undocumented_in(text, private_names())] == found
