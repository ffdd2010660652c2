"""The logs of models written in plain Python: rows, counters and a summary of the events.

In: for each message the instants at which it entered and left a queue, and its outcome. Out: `LOG_ROW` and `EVENT_ROW`
arrays, the columns of `eventlog.schema.COUNTERS`, and one `Happening` for each kind of event.

- `queue_log.py`: rows until they are collected, counters of every queue, and the end of the warm-up;
- `happenings.py`: events by kind: their count, the first instant, its client.

Invariants: arrivals count from when a message entered its queue, outcomes from when it left, each after the warm-up;
the warm-up restarts statistics and changes no state; counters add up to the rows.

`eventlog.queue_counts` defines the counters of a queue, also for recordings of live services. Read first:
`queue_log.py`.
"""
