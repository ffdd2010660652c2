"""Commands that simulate, and that summarize, compare and report simulations and recordings.

In: arguments of the command line. Out: results, which `cli.output` prints. A module here is a command, named as users
type it; code that several of them need is in three folders, of which each imports only those listed after it:

- `options`: options that several commands have, and the objects that they describe;
- `progress`: progress and questions while a command works;
- `results`: the commands' results: rows, tables, sentences, documents.

Invariants: figures are those of `qsctl.sim` and `qsctl.summary`, at most summed here; heavy imports are inside the
functions that need them.

Read first: `simulate.py`, then `results/simulate.py`.
"""
