"""Continuous transfer of samples from a queue to a queue of another service, for `qsctl bridge`.

Input: the administration of two services. Output: the samples in the target, with their identities; counts; and a
report whenever the state changes. Read `steps.py` first, then `driver.py`.

`steps` has the two state machines, without I/O: a shovel moves, a mirror copies. Each yields one effect at a time and
receives its answer. `driver` carries out the effects. An error ends a state machine as a kill ends the process: the
driver starts another one, which reads its state from the stores of the queues.

What always holds, wherever the machine, the process, or one of the services ends:

- No sample is lost: the source releases a sample (shovel) or the place goes behind it (mirror) once the target has
  stored it. A mirror copies what the source holds when it reads; it does not see a sample that a consumer acknowledged
  before.
- A sample that may be in the target already is inserted with the redelivered flag, and only after that is durable
  somewhere: a shovel flags it in the source first, a mirror writes first how far it is about to copy. A target that
  still holds the sample drops the second copy, by its identity.
- Samples are inserted in the order of the source's positions, and none overtakes one that the target has no room for.
- One batch is in flight: at most `BATCH_COUNT` samples and `BATCH_BYTES` octets, or one larger sample.
- A sample that has crossed the largest number of bridges stays (shovel) or is passed over (mirror). A sample that has
  crossed one is flagged: a ring of bridges may bring it to a queue that held it before.

The state is in queues: that of a shovel is the source itself, that of a mirror a sample in a queue of the target's
service, see `_place.py`.
"""
