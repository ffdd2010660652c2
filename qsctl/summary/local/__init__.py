"""DuckDB in this process in place of Spark: the same measures, for runs of one machine, without Java.

Comes in: the texts of Spark's SQL that `measures` are. Goes out: their rows, equal to Spark's to the last digit
(`tests/summary/test_local.py`). `dialect.py` translates a text, `session.py` has a session and frames with as much of
the interface of Spark's as measures use.
"""
