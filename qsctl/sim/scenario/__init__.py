"""Scenarios of simulations, as dataclasses, as XML, and with single values replaced.

In: a file of schema `qsctl_simulation.xsd`, `PATH=VALUE` overrides, a broker's client profile. Out: a frozen `Scenario`
that every model can be prepared from, or one error that lists every problem with its file, line, element, value and the
allowed values. The reverse: the canonical text that a run folder keeps, and its digest, which names the run.

- `scenario.py`, `parts`: the dataclasses of a scenario, and of its parts;
- `forms`: the table of elements and attributes, with kind and range, and the builder and writer that follow it;
- `rules`: rules across attributes; `places.py`: the place of each part in its file;
- `xml.py`: the reader;
- `overrides`: `profile[web]/queue[D-1]/max-depth=4000`, and a broker's profile in place of a scenario's;
- `changes.py`, `intervals.py`: changes at set times during a run;
- `randomness.py`: whether one repetition is enough.

Invariants: a scenario holds integer nanoseconds, bytes and bits a second, whatever units the file used; what is read,
written and read again is equal.

Read first: `scenario.py`, then `forms/form.py` and the beginning of `forms/elements.py`.
"""
