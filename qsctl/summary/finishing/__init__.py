"""The final computations on the driver: from the small results of Spark to the figures, in Arrow and numpy.

Input: tables with a row for each group, replication, fate and bucket, whose size does not grow with the log; planning a
Spark query over so few rows takes a hundred times longer than this. Output: the tables of figures. `figures.py` has the
order of the steps: `counters` of the cells, `percentiles` (the wanted ranks, and the values at them), `intervals` over
replications; `arrow` has the table operations that they use.
"""
