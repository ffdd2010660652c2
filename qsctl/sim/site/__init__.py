"""A site's integration engine as a scenario, and analyses for its operator before a change.

In: a NetConfig with the known part of its load (`qsctl.netconfig`), or a scenario of an engine. Out: a scenario whose
values are captured, derived or assumed, and marked as such; the message rates between threads; and the best process for
each thread.

- `scenario.py`: the scenario; `_weights.py`: the frequency of each transaction id, by outgoing counts; `marks.py`: its
  text with a comment at every value that is not known;
- `flows.py`: rates along the routes of a scenario, and the work of its processes;
- `described.py`: a scenario as a NetConfig, for the rules of `netconfig.lint`;
- `balance.py`: a search over moves of threads between processes, checked by simulation.

Invariants: no part of a site is left out without a note; a value that no source contains is marked in the written text;
a search never proposes a change that its own simulation shows to be worse.

Read first: `scenario.py`.
"""
