"""A cluster of queuing services under faults [QS 7]: the live driver, on a virtual clock, judged by rules.

In: a scenario of model `world`: a workload, a `<world>`, perhaps a schedule of faults. Out: a `sim.model.ModelRun` with
a row for each sample, the events of the cluster, and a verdict for each rule.

- `agenda.py`: the clock, and the hash of the whole history; `network.py`, `links.py`, `session.py`: datagrams, messages
  between services, and their connections to programs; `disk.py`: sectors under a file system, and their state after a
  crash; `database.py`: a model of database files;
- `process.py`: the driver that runs live, over these; `service.py`: the times of its passes, and its faults;
- `stored.py`: the judges' account of a service's stored records;
- `producing.py`, `consuming.py`, `programs.py`: programs with the state machines of live clients;
- `administrator.py`: deletes queues and creates them again; `stranger.py`: sends forged frames;
- `world.py`: all of it; `connections.py`: which program is connected to which service; `configuration.py`: the
  configuration of each instance; `incarnations.py`: which creation of a queue each of them has;
- `vocabulary.py`, `schedule.py`, `director.py`: faults as lines of text, and the component that applies them;
  `random_faults.py`: drawn ones;
- `history.py`, `invariants/`, `client_view.py`: observers that judge; `verdict.py`: a world run to its end, and the
  fewest faults that break it; `figures.py`, `elections.py`, `world_log.py`, `run.py`: the results for users.

Invariants: the seed decides everything; no step of a protocol is decided here; the judges use messages that left a
service or reached a program, and synced records, not a replica's view of itself (but for P5 and P6, which look at roles
and logs).

What is not simulated: DDS, the pages of database files, and the octets between programs and services.

Read first: `world.py`.
"""
