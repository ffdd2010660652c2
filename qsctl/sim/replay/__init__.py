"""A recording of a queuing service, through the same engine under virtual time, with what was changed.

In: a scenario of model `replay`: a recording (`eventlog.recording`), the service with what is changed of it, and
changes of who consumes. Out: a `sim.model.ModelRun` whose rows are made as those of the recording were, tables and all:
a replay can be replayed.

What is copied, as long as what it depends on is as it was:

- every write, at its instant and in its order; its size, lifespan and address;
- every consumer that joined, left or reported on itself, every command that changed something;
- every answer of a consumer to a delivery that it was sent at the same instant, late ones and silence too;
- the instants at which the live service woke for its timers, a little after they were due;
- refusals that the queue did not decide: a payload too large for the transport, a disk that had no room.

What is modelled, where the change leaves the recording behind:

- a consumer that is sent something else, or at another time, serves one sample at a time. What it needs for it, and
  what it answers, is what was recorded of this very sample where the consumers of the queue are alike, or where it is
  this consumer that had it; else, and for deliveries that there were not, both are drawn from what the consumer did
  with samples of that size (`services.py`);
- copies of consumers are there when the original is, and draw by themselves;
- a producer whose window is full waits; one that was seen to wait for answers all the time writes as long after an
  answer as it did; refused samples are written again as often and as late as refused ones were (`producers.py`).

When not to trust it:

- where consumers serve several samples side by side, or what they need depends on what the queue holds: they are taken
  to serve one after the other;
- where producers would behave otherwise under the change in ways that no recording shows: give up, slow down, retry,
  write more than they did;
- where the change makes the service itself the bottleneck: what its processor and its disk need is not modelled, only
  in the recording as it was;
- for what the recording lacks: of a share of the samples, of one that is not complete, of samples that were there
  before it began and were with a consumer: these are offered anew at its beginning, and `difference.py` says so.

- `recording.py`: the tables in memory; `settings.py`: from a recording to a scenario and back to settings;
- `run.py`: the driver; `part.py`, `parts.py`: the engines; `instants.py`: when they are stepped; `commands.py`;
- `cast.py`, `consumers.py`, `services.py`: who consumes; `producers.py`: who writes;
- `difference.py`: what became of every sample, then and now; `egress.py`: the same load for a broker's clients.

Invariants: without a change the rows are those of the recording, or `difference.py` has a line that says why; what is
drawn for a delivery depends on the consumer, the sample and the attempt alone, so that changes compare by common random
numbers.

Read first: `run.py`.
"""
