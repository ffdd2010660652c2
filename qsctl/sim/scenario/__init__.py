"""Scenarios of simulations, as dataclasses, as XML, and with single values replaced.

In: a file of schema `qsctl_simulation.xsd`, `PATH=VALUE` overrides, a broker's client profile. Out: a frozen `Scenario`
that every model can be prepared from, or one error that lists every problem with its file, line, element, value and the
allowed values. Back: the canonical text that a run folder keeps, and its digest, which names the run.

- `scenario.py` and `engine.py`: the dataclasses, those of an integration engine apart;
- `form.py`, `forms.py`, `engine_forms.py`, `values.py`: the table of elements and attributes, with kind and range;
- `xml.py`, `build.py`: the reader; `text.py`: the writer; both follow the table;
- `rules.py`, `engine_rules.py`: rules across attributes; `places.py`: the place of each part in the file;
- `overrides.py`: `profile[web]/queue[D-1]/max-depth=4000`; `overlay.py`: a broker's profile in place of a scenario's;
- `changes.py`, `intervals.py`: changes at set times during a run;
- `randomness.py`: whether one repetition is enough.

Invariants: a scenario holds integer nanoseconds, bytes and bits a second, whatever units the file used; what is read,
written and read again is equal.

Read first: `scenario.py`, then `form.py` and the beginning of `forms.py`.
"""
