"""What models in Python record of a run: rows and counters, and a summary of the events.

In: what a model learns of each message: when it entered a queue, when it left, what became of it. Out: `LOG_ROW` and
`EVENT_ROW` arrays, the columns of `eventlog.schema.COUNTERS`, and one `Happening` for each kind of event.

- `queue_log.py`: rows until they are collected, counters of every queue, and the end of the warm-up;
- `happenings.py`: events by kind: how often, when first, whose.

Invariants: arrivals count from when a message entered its queue, outcomes from when it left, each after the warm-up;
the warm-up restarts statistics and changes no state; counters add up to the rows.

What is counted of one queue is `eventlog.queue_counts`'s, for recordings of live services too. Read first:
`queue_log.py`.
"""
