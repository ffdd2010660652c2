"""The XML form of a scenario: one table of elements and attributes, and the builder and writer that follow it.

Elements with attributes in, dataclasses of `scenario.py` and `parts` out, or every problem in one error; and back: the
canonical text and its digest. Decides which element a dataclass is, its attributes, their units and ranges. Does not
decide which values fit together: that is `rules`; nor read a file: that is `scenario.xml`.

- `form.py`: what the table is made of; `values.py`: the texts of single values;
- `elements.py`: the table; `client.py`, `broker_queue.py`, `engine.py`, `replay.py`: the parts of it by subject;
- `build.py`: elements to dataclasses; `text.py`: a scenario as text again.

Always: what is built, written and built again is equal. Read `form.py` first, then `elements.py`.
"""
