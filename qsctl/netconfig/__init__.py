"""Readers of an integration engine's site files: its routes, its load, and faults of its configuration.

In: a NetConfig (processes, threads, routes), statistics dumps, two listings of a recovery database, message archives.
Out: a `NetConfig` of plain dataclasses with the line of each part (`model.py`), findings about it (`lint.py`), and the
known load of each thread (`load.py`).

- `tcl.py`: Tcl lists in a text, with line numbers; `_text.py`: the decoding of a file;
- `read.py`, `_blocks.py`: a NetConfig; `routing.py`: which routes apply to a message;
- `graph.py`: the graph of threads that feed each other; `_work.py`: the translation work of each process;
- `statistics.py`: the counts of a thread; `archives.py`: messages that a thread saved; `listed_rates.py`: rates from
  two listings; `procedures.py`: the durations of procedures, by name.

Invariants: a reader processes the whole file: a part that it cannot parse is reported with its line, and the other
parts are read; a file takes at most a few times its size of memory, and an archive that of its longest line; messages
quote only the wrong value of a vendor's file.

Read first: `model.py`, then `read.py`.
"""
