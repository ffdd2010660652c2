"""The event log: the folder of a run, written by simulator and service, read by Spark and people.

Input: structured arrays of rows, events and counters from a model or from the service's recorder. Output: a run folder
of Parquet parts with `run.json`, on this machine or behind a URI, and readers of it.

- `schema.py`: the Arrow schemas and the latency buckets; `outcomes.py`: the outcomes of messages, and which of them are
  losses, with the loss ratio that every figure uses;
- `run_folder.py`: the folder's layout, `run.json`, and its status; `location.py`: paths and URIs;
- `columns.py`, `writer.py`: from rows to columns to parts; `reader.py`, `checked_files.py`: reading, with checks of
  files;
- `queue_counts.py`: the counters of one queue, for models in Python and recordings;
- `recording/`: the events of a live service folded into the same tables, and into those that a replay needs;
- `explained.py`: the meaning of each kind of event for an operator.

Invariants: nothing is overwritten; a folder records whether it is complete; the same run has the same bytes and the
same fingerprint; a missing, added or changed file is an error that names it; the duration of a step that did not
happen is null.

Read first: `schema.py`, then `run_folder.py`.
"""
