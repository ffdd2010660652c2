"""A site of an integration engine as its own files describe it: its routes, its load, and what is wrong.

In: a NetConfig (processes, threads, routes), statistics dumps, two listings of a recovery database, message archives.
Out: a `NetConfig` of plain dataclasses with the line of each part (`model.py`), findings about it (`lint.py`), and what
is known of each thread's load (`load.py`).

- `tcl.py`: lists of Tcl in a text, with lines; `text.py`: the file's text, whatever its encoding;
- `read.py`, `blocks.py`, `problems.py`: a NetConfig; `routing.py`: which routes apply to a message;
- `graph.py`: which thread feeds which; `work.py`: how much they ask of their processes;
- `statistics.py`: what a thread counted; `archives.py`: messages that a thread saved;
  `listed_rates.py`: what moved between two listings; `procedures.py`: how long procedures take, by name.

Invariants: a reader is total: whatever the file holds, it is understood or named with its line, and what is around it
is read; no file takes more memory than a few times its size, and archives take that of their longest line; lines of
the vendor's files stay out of messages but for the value that is wrong.

Read first: `model.py`, then `read.py`.
"""
