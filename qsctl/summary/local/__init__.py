"""DuckDB in this process as a replacement of Spark: the same measures, for local runs, without Java.

In: the Spark SQL texts of `measures`. Out: their rows, equal to Spark's to the last digit
(`tests/summary/test_local.py`). `_dialect.py` translates a text; `_session.py` has a session and frames with the part
of Spark's interface that measures use.
"""
