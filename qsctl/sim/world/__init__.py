"""A cluster of queuing services under faults [QS 7]: what runs live, on a virtual clock, judged by rules.

In: a scenario of model `world`: a workload, a `<world>`, perhaps a schedule of faults. Out: a `sim.model.ModelRun` with
a row for each sample, the events of the cluster, and a verdict for each rule.

- `agenda.py`: the clock, and the hash of the whole history; `network.py`, `links.py`, `session.py`: datagrams, letters
  between services, and what connects them to programs; `disk.py`: sectors under a file system, and what survives a
  crash; `database.py`: what stands for a database file;
- `process.py`: the driver that runs live, over these; `service.py`: when it does a pass, and what befalls it;
- `stored.py`: what judges know of what a service has stored;
- `producing.py`, `consuming.py`, `programs.py`: programs with the state machines of live clients;
- `administrator.py`: who deletes queues and creates them again; `stranger.py`: who sends what no member sent;
- `world.py`: all of it; `connections.py`: who is connected to whom; `configuration.py`: what each instance is
  configured with; `incarnations.py`: which creation of a queue each of them has;
- `vocabulary.py`, `schedule.py`, `director.py`: faults as lines of text, and who does them; `random_faults.py`: drawn;
- `history.py`, `invariants/`, `client_view.py`: observers that judge; `verdict.py`: a world run to its end, and the
  fewest faults that break it; `figures.py`, `elections.py`, `world_log.py`, `run.py`: what users see of it.

Invariants: the seed decides everything; nothing of a protocol is decided here; what is judged is what left a service,
reached a program or was synced, not what a replica says of itself (but for P5 and P6, which look at roles and logs).

What is not simulated: DDS, the pages of database files, and the octets between programs and services.

Read first: `world.py`.
"""
