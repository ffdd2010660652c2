"""Overrides of single values of a scenario: by `--set path=value`, and by a broker's client profile.

In: a scenario and `PATH=VALUE` texts, or a profile. Out: a changed copy, or one error that names the path, the value
found and the values allowed. Decides which paths exist, from the table in `forms`. `rules` checks whether the values
are compatible.

- `set_values.py`: a value by its path; `short_paths.py`: short names of the settings that are varied most;
- `engine_paths.py`: threads of an integration engine by their names;
- `overlay.py`: a client profile in place of a scenario's.

Invariant: the given scenario is unchanged. Read `set_values.py` first.
"""
