"""A service's event log: its core's events folded into the tables of a run folder.

In: the events of a service, live or simulated (`core.events`), with its inputs among them, and what it held at the
beginning. Out: the tables of `eventlog.schema` and of `schema.py` here.

- `schema.py`: the tables that a replay needs, `arrivals`, `deliveries`, `peers`, `commands`.

Read first: `schema.py`.
"""
