"""Recordings of a running service's events, as run folders that `qsctl summarize`, `report` and `compare` read.

A recorder is a process of its own: the service encodes its events and sends them through a local socket, the recorder
folds them into rows and writes them (`eventlog.recording`). So the service shares neither the interpreter lock nor a
slow disk with the recorder, the sessions of a service are recorded together, and the folder is finished even if the
service is killed.

- `recordings.py`: the current recording: its commands, status and log lines, and the recorder's process;
- `reporting.py`: the reports of an engine's process to the recorder; `_beginning.py`: its contents when the recording
  begins; `_feed.py`: the socket to the recorder, on which the service never blocks;
- `_recorder.py`: the recorder's process; `new_folder.py`: the folder of a new recording;
- `embedded.py`: the recording of a service in a state directory: each command writes its part of the event history to a
  file, and the command that stops the recording makes the rows from all files.

Invariants: a failure of the recorder, the socket or the folder does not affect the service; payloads are never written.

Read first: `reporting.py`, then `_recorder.py`.
"""
