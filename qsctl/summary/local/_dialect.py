"""Translation of Spark SQL to DuckDB SQL, by sqlglot.

sqlglot translates the syntax but not all semantics; corrected here are:

- casts from double to an integer truncate; DuckDB rounds;
- a constant of type double is read from its digits; DuckDB would divide a decimal number and round twice;
- `count_if` of a condition that is null for all rows is 0;
- array indexes begin with 0, except in `element_at`;
- an overflowing cast is an error; sqlglot would make it null.

`FUNCTIONS` defines functions of Spark that DuckDB lacks.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

FUNCTIONS: Final = (
    "create macro timestamp_micros(unix_us) as make_timestamp(unix_us)",
    "create macro pmod(number, modulus) as ((number % modulus) + modulus) % modulus",
)

_FRAME: Final = re.compile(r"\{(\w+)\}")
_NAMED: Final = "_frame_"
_END: Final = "_of_ours"
_PLACE: Final = re.compile(rf"\b{_NAMED}(\w+?){_END}\b")


def translated(text: str, frames: Mapping[str, str]) -> str:
    """Translate a statement of Spark SQL to DuckDB SQL.

    Args:
        text: the statement, with `{name}` in place of a frame.
        frames: the DuckDB statements of the frames, by name.
    """
    return _PLACE.sub(lambda place: f"({frames[place[1]]})", _translated(text))


@functools.lru_cache(256)
def _translated(text: str) -> str:
    named = _FRAME.sub(rf"{_NAMED}\1{_END}", text)
    statement = annotate_types(sqlglot.parse_one(named, read="spark"), dialect="spark")
    for hint in list(statement.find_all(exp.Hint)):
        hint.pop()
    for node in reversed(list(statement.bfs())):  # inner nodes first
        corrected = _corrected(node)
        if corrected is not None:
            corrected.type = node.type
            node.replace(corrected)
    return statement.sql(dialect="duckdb")


def _corrected(node: exp.Expr) -> exp.Expr | None:
    """Return the replacement of a node of a statement; None if it needs none."""
    if isinstance(node, exp.CountIf):
        return exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=node.this.copy()))
    if isinstance(node, exp.Bracket):
        place = node.expressions[0].copy()
        if not node.args.get("offset"):
            place = exp.Add(this=exp.Paren(this=place), expression=exp.Literal.number(1))
        return exp.Anonymous(this="list_extract", expressions=[node.this.copy(), place])
    if isinstance(node, exp.Cast):
        return exp.Cast(this=_to_be_cast(node), to=node.to.copy())
    return None


def _to_be_cast(node: exp.Cast) -> exp.Expr:
    of: exp.Expr = node.this.copy()
    if node.to.is_type(*exp.DataType.INTEGER_TYPES) and of.is_type(*exp.DataType.REAL_TYPES):
        return exp.Trunc(this=of)
    if node.to.is_type(exp.DataType.Type.DOUBLE) and isinstance(of, exp.Literal) and not of.is_string:
        return exp.Literal.string(of.this)
    return of
