"""Recordings of a running service's events, as run folders that `qsctl summarize`, `report` and `compare` read.

A recorder is a process of its own: the service encodes its events and sends them through a local socket, the recorder
folds them into rows and writes them (`eventlog.recording`). So the service shares neither the interpreter lock nor a
slow disk with the recorder, the sessions of a service are recorded together, and the folder is finished even if the
service is killed.

- `recordings.py`: which recording there is: commands, status, log lines, the recorder's process;
- `reporting.py`: what an engine's process reports, from the beginning on; `_beginning.py`: what it holds then;
  `_feed.py`: the socket, of which the service never waits for room;
- `_recorder.py`: the recorder's process; `new_folder.py`: the folder that a recording begins with;
- `embedded.py`: a service in a state directory, whose commands leave the story in files until the recording is stopped.

Invariants: a failure of the recorder, the socket or the folder does not affect the service; payloads are never written.

Read first: `reporting.py`, then `_recorder.py`.
"""
