"""The measures: DataFrame transformations over the event log or the counters, one for each table.

Input: frames of the run folder. Output: a frame with the schema that `tables` declares for it. A measure reads no
file and changes no setting. Read `tables.py` first, then `observation.py`.
"""
