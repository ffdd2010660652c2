"""Options that several commands of simulations share, and the objects that they describe.

Texts of the command line in; a scenario, a recording, a profile, a queue of another broker, settings of Spark, or one
error that names the option and the allowed values out. Decides the meaning of an option. Runs nothing: the commands do.

- `recorded.py`, `captures.py`, `foreign_queue.py`, `profile_overlay.py`, `ready.py`: sources of a scenario;
- `spark.py`: where simulations are computed; `confidence.py`, `selection.py`: checks of requested statistics;
- `command_line.py`: the command that repeats a run, as text.

Always: an option means the same in each command that has it. Read `recorded.py` first.
"""
