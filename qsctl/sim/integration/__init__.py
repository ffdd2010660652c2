"""An integration engine [CLOVERLEAF] in a compiled loop: the rules of `core.integration`, for runs that only count.

In: a scenario of model `integration`. Out: a row of the log for each visit of a message to a queue, counters by thread
and queue, the events of the engine. `sim.engine` steps the engine itself, with a database on disk and interruptions at
every step; this is the same engine, without texts and contents, and a test holds the two equal to the message.

- `records.py`: rows of the arrays; `_layout.py`: a scenario as such rows; `arrays.py`: room for them;
- `_advance.py`: from one instant to the next, senders, receivers, what is planned; `_threads.py`: what threads and
  processes do; `_jobs.py`: procedures and route details, a step at a time;
- `_visits.py`: counters and rows; `labels.py`: labels, durations, transaction ids; `_lists.py`: queues and heaps;
- `run.py`: the run around the kernel.

Invariants: the same scenario and seed give the same rows; a message is in one queue, at work, on its way, with its
sender, or in the recovery database alone; a draw depends on the label of its message alone, whatever happened before.

Read first: `_advance.py`, then `_threads.py` and `_jobs.py`.

What is left out, since no figure of a run depends on it: contents beyond their label and length, ids across starts,
flags of possible duplicates, the error database beyond its count.
"""
