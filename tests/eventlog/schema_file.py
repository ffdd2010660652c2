"""The file of schemas for tools without qsctl, in the form of Spark's JSON, made from the schemas of the event log.

python -m tests.eventlog.schema_file > schemas/qsctl_event_log.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from qsctl.eventlog.described import description_of, time_of, unit_of
from qsctl.eventlog.names import NAME_TABLES, REPLICATION
from qsctl.eventlog.tables import LOG_TABLES

FILE = Path(__file__).parents[2] / "schemas/qsctl_event_log.json"


def document() -> dict[str, Any]:
    """Every table, with the descriptions where Spark and Delta have comments."""
    logs = {name: schema.append(REPLICATION) for name, schema in LOG_TABLES.items()}
    return {
        name: {"type": "struct", "fields": [field_of(each) for each in schema]}
        for name, schema in {**logs, **NAME_TABLES}.items()
    }


def field_of(field: pa.Field) -> dict[str, Any]:
    metadata = {"comment": description_of(field), "unit": unit_of(field), "time": str(time_of(field))}
    return {
        "name": field.name,
        "type": type_of(field.type),
        "nullable": field.nullable,
        "metadata": {key: text for key, text in metadata.items() if text},
    }


def type_of(kind: pa.DataType) -> Any:
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": type_of(kind.value_type), "containsNull": True}
    names = {
        pa.int32(): "integer", pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean",
        pa.string(): "string", pa.timestamp("us", "UTC"): "timestamp",
    }  # fmt: skip
    return names[kind]


def text() -> str:
    return json.dumps(document(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
