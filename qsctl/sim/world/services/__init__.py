"""The services of a world: the live driver over the simulated environment, and the judges' account of its records.

Messages, frames and instants in; messages, frames and records on a simulated disk out. Decides when a pass of the
driver begins and how long it lasts, and how a process ends. Does not decide any step of a protocol: those are
`qsctl.service` and `qsctl.core`, the same code as in production.

- `_process.py`: one process: the driver over a simulated disk, links and clock;
- `service.py`: the processes of one instance, the times of their passes, and their faults;
- `discovery.py`: the other processes that a service has discovered;
- `configuration.py`: the configuration of each instance; `incarnations.py`: which creation of a queue each of them has;
- `history.py`: the observers of a world; `stored.py`: the stored streams, and the states that a restart may find.

Always: observers see only what has left a service, or is on its disk. Read `_process.py` first, then `service.py`.
"""
