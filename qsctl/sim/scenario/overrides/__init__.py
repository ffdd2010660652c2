"""Single values of a scenario replaced: by `--set path=value`, and by a broker's client profile.

A scenario and `PATH=VALUE` texts, or a profile, in; a changed copy out, or one error that names the path, what is there
and what is allowed. Decides which paths there are: those of the table in `forms`. Does not check what values are
together: that is `rules`.

- `set_values.py`: a value by its path; `short_paths.py`: short names of the settings that are varied most;
- `engine_paths.py`: threads of an integration engine by their names;
- `overlay.py`: a client profile in place of a scenario's.

Always: the scenario that came in is unchanged. Read `set_values.py` first.
"""
