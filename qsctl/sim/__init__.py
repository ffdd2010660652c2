"""The discrete-event simulator: a scenario in, a run folder with its event log out.

In: a `Scenario` (`scenario/`), read from XML or built in Python, with a seed. Out: message rows, events and counters of
each repetition, written through `eventlog`; or, without a folder, the counters alone (`run.simulate_counters`), which
is what sweeps, comparisons and sizing work on.

Five models, one folder each, all behind the protocol of `model.py`:

- `egress/`: the egress queues of a Solace broker and of a TIBCO appliance, compiled with numba;
- `replay/`: a recording of a live service, replayed through the same engine with changed settings;
- `service/`: our own queues, `core.turn` itself under virtual time, with the producers and consumers of `core.client`;
- `engine/`: the integration engine, `core.integration` itself under virtual time; `integration/`: the same rules in a
  compiled loop, for runs that only count.

`arrivals/` draws the arrivals of all models; `kernel/` contains the code and record layouts that compiled models share;
`recording/` the counters and logs of the models in Python; `sizing/` the questions of `qsctl size`; `splitting/` the
estimation of rare events by multilevel splitting; `listings/` a run's state in the form of a broker's own listings.

Invariants: time is in whole nanoseconds and never read from a clock; every random number is a hash of seed, repetition,
stream and count, so that the same scenario writes the same bytes with any number of workers, and a variant of a
scenario sees the same arrivals; every message ends in exactly one outcome (`eventlog.outcomes`).

Read first: `run.py`, then `replication.py` and `model.py`, then the model of interest.
"""
