"""Commands that simulate, and that summarize, compare and report what was simulated.

In: arguments of the command line. Out: results, which `cli.output` prints. A module here is a command, named as people
write it; what several of them need is in three folders, of which each imports only those behind it:

- `options`: options that several commands have, and what they make of them;
- `progress`: what a user sees and is asked while a command works;
- `results`: what commands return: rows, tables, sentences, documents.

Invariants: figures are those of `qsctl.sim` and `qsctl.summary`, at most summed here; heavy imports are inside the
functions that need them.

Read first: `simulate.py`, then `results/simulate.py`.
"""
