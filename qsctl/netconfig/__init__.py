"""A site of an integration engine as its own files describe it: its routes, its load, and its faults.

In: a NetConfig (processes, threads, routes), statistics dumps, two listings of a recovery database, message archives.
Out: a `NetConfig` of plain dataclasses with the line of each part (`model.py`), findings about it (`lint.py`), and the
known load of each thread (`load.py`).

- `tcl.py`: lists of Tcl in a text, with lines; `text.py`: the file's text, in any encoding;
- `read.py`, `blocks.py`, `problems.py`: a NetConfig; `routing.py`: which routes apply to a message;
- `graph.py`: the threads that each thread feeds; `work.py`: the work of their processes;
- `statistics.py`: the counts of a thread; `archives.py`: messages that a thread saved; `listed_rates.py`: the movements
  between two listings; `procedures.py`: the durations of procedures, by name.

Invariants: a reader is total: each part of a file is understood or named with its line, and the parts around it are
read; no file takes more memory than a few times its size, and archives take that of their longest line; lines of the
vendor's files stay out of messages but for the value that is wrong.

Read first: `model.py`, then `read.py`.
"""
