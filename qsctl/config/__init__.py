"""Queuing-service XML to settings, in visible steps [QS 3].

What comes in: files of XML, variables, options. What goes out: frozen settings of the core and of its drivers, each
with the place where its value was given, or one error with all problems of a file. The steps, in `load.py`'s order:

1. `files`: load order, safe parsing, `$(VAR)`, and the judgement of the schema.
2. `qos_libraries`: profiles and their inheritance; `sample_types`: the types of samples.
3. `reader.py` with `tables`: elements to settings, own, inherited and default, each with its origin.
4. `build.py` with `rules`: the parts put together, and what they must be together.

What always holds: the tables alone know tags, ranges and defaults, and reader, writers, options and help are made from
them; nothing is fetched or expanded from a file; the same judgement serves `validate`, `serve` and CREATE.

Read first: `load.py`, then `tables/queue.py`.
"""
