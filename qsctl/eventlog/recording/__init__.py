"""The event log of a service: its core's events folded into the tables of a run folder.

Input: the events of a service, live or simulated (`core.events`), with its inputs among them, and its contents at the
beginning. Output: the tables of `eventlog.schema` and of `schema.py` here.

- `schema.py`: the tables that a replay needs, `arrivals`, `deliveries`, `peers`, `commands`;
- `story.py`: the event history that a service reports, in parts; `sampling.py`: the samples that have rows;
- `fold.py`: the event history into rows; `_sample_steps.py`: its events of samples, `queue_state.py`: the state of a
  queue meanwhile, `_recording_rows.py`: the tables that all write into;
- `tables.py`, `writer.py`: rows to Arrow tables, to parts that close now and then, and a `run.json` that lists them.

Invariants: the fold reads no clock; rows and counters of one instant agree; a row is of one sample, queue and cause,
and is never changed; an unknown event is an error, not a gap.

Read first: `schema.py`, then `fold.py`.
"""
