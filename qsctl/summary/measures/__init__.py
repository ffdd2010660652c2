"""The measures: one DataFrame transformation each, over the event log or the counters.

Input: frames of the run folder. Output: a frame with the schema that `tables` declares for it. A measure reads no
file and changes no setting. Read `tables.py` first, then `observation.py`.
"""
