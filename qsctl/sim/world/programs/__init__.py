"""The programs of a world: producers, consumers and an administrator, with the state machines of live clients.

Deliveries, answers and instants in; writes, acknowledgments and commands out. Decides how a program reacts: it writes
unanswered samples again, processes one sample at a time, deletes a queue and creates it again [QS 5.4]. Does not decide
which service a program is connected to: that is `sim.world._connections`.

- `producing.py`, `consuming.py`: a program with a producer or a consumer;
- `workload.py`: the programs that a scenario's workload declares;
- `administrator.py`: commands that delete queues and create them again.

Always: a program reacts to the messages and instants that reach it, and to nothing else of the world. Read
`producing.py` first.
"""
