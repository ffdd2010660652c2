"""The small rest, on the driver: what Spark counted is made into figures here, in Arrow and numpy, and nowhere else.

What arrives here has a row a group, replication, fate and bucket, and does not grow with the log. Planning a query over
so few rows is a hundred times slower than computing it and more. `figures.py` is the way through: `counters`
of the cells, `percentiles` (which ranks are wanted, what was found at them), `intervals` over replications; `arrow` are
the operations that they use.
"""
