"""A cluster of queuing services under faults [QS 7]: the live driver on a virtual clock, judged by rules.

In: a scenario of model `world`: a workload, a `<world>`, and optionally a schedule of faults. Out: a
`sim.model.ModelRun` with a row for each sample, the events of the cluster, and a verdict for each rule.

- `environment`: the virtual clock, the network, connections, disks and database files;
- `programs`: producers, consumers and an administrator, with the state machines of live clients;
- `faults`: faults as lines of text, written or drawn, and forged frames;
- `services`: the live driver over the environment; its configuration, and the account of its stored records;
- `_connections.py`: the connections of programs to services; `_world.py`: services, programs and environment together;
- `invariants`: the rules, each an observer; `_director.py`: applies the faults of a schedule;
- `results`: a world run to its end and judged, and its figures; `run.py`: the model.

Each imports only those listed before it; a contract in `pyproject.toml` holds that.

Invariants: the seed decides everything; no step of a protocol is decided here; the judges use messages that left a
service or reached a program, and synced records, not a replica's view of itself (except P5 and P6, which look at roles
and logs).

What is not simulated: DDS, the pages of database files, and the octets between programs and services.

Read first: `_world.py`.
"""
