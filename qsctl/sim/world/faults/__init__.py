"""Faults as text: their vocabulary, schedules written by hand, and schedules drawn from a seed.

Lines of text, or a seed and the scenario's `<world>`, in; steps of a schedule out. Decides which lines are permitted,
and which faults a seed draws. Does not apply them: that is `sim.world._director`.

- `vocabulary.py`: the actions on a world, the conditions to wait for, and the syntax of their arguments;
- `schedule.py`: a schedule as lines of text; `random_faults.py`: drawn ones;
- `stranger.py`: frames that a process without the cluster's key can send [QS 7.1].

Always: a drawn schedule written as text and read again is the same schedule. Read `vocabulary.py` first.
"""
