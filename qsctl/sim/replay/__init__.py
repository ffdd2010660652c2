"""The replay of a queuing service's recording, through the same engine under virtual time, with changes.

In: a scenario of model `replay`: a recording (`eventlog.recording`), the service with changes to it, and changes of its
consumers. Out: a `sim.model.ModelRun` whose rows and tables are made like those of the recording: a replay can be
replayed.

Copied, as long as its conditions are unchanged:

- every write, at its instant and in its order; its size, lifespan and address;
- every consumer that joined, left or reported on itself, every command that changed something;
- every answer of a consumer to a delivery that it was sent at the same instant, late ones and silence too;
- the instants at which the live service woke for its timers, a little after they were due;
- refusals that the queue did not decide: a payload too large for the transport, a disk that had no room.

Modelled, where the change departs from the recording:

- a consumer that is sent another sample, or at another time, serves one sample at a time. Its service time and its
  answer are those recorded of this very sample where the consumers of the queue are alike, or where this consumer had
  it; else, and for new deliveries, both are drawn from its deliveries of that size (`_services.py`);
- copies of consumers exist while the original does, and draw by themselves;
- a producer whose window is full waits; one that was seen to wait for answers all the time writes as long after an
  answer as it did; refused samples are written again as often and as late as refused ones were (`_producers.py`).

Limits of validity:

- where consumers serve several samples side by side, or their service time depends on the queue's content: they are
  assumed to serve one after the other;
- where producers would behave otherwise under the change in ways that no recording shows: give up, slow down, retry,
  write more than they did;
- where the change makes the service itself the bottleneck: its processor and its disk are not modelled, but only copied
  from the recording;
- where the recording is incomplete: it has a fraction of the samples, it was cut off, or samples were with a consumer
  before it began: these are offered anew at its beginning, and `difference.py` reports that.

- `recording.py`: the tables in memory; `settings.py`: from a recording to a scenario and back to settings;
- `run.py`: the driver; `_part.py`, `parts.py`: the engines; `_instants.py`: when they are stepped; `commands.py`;
- `_consumers.py`, `_consumers_by_queue.py`, `_services.py`: consumers; `_producers.py`: producers;
- `difference.py`: the outcome of every sample, then and now; `egress.py`: the same load for a broker's clients.

Invariants: without a change the rows are those of the recording, or `difference.py` has a line with the reason; the
values drawn for a delivery depend on the consumer, the sample and the attempt alone, so that changes compare by common
random numbers.

Read first: `run.py`.
"""
