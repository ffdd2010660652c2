"""Options that several commands of simulations have, and what they make of them before the command begins.

Texts of the command line in; a scenario, a recording, a profile, a queue of another broker, the settings of Spark, out,
or one error that names the option and what is allowed. Decides what an option means. Does not run anything: that are
the commands.

- `recorded.py`, `captures.py`, `foreign_queue.py`, `profile_overlay.py`, `ready.py`: where a scenario comes from;
- `spark.py`: what runs many simulations; `confidence.py`, `selection.py`: checks of what is asked of them;
- `command_line.py`: the command that does the same again, as text.

Always: an option means the same in each command that has it. Read `recorded.py` first.
"""
