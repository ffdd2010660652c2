"""The XML form of a scenario: one table of elements and attributes, and the builder and writer that follow it.

In: elements with attributes. Out: dataclasses of `scenario.py` and `parts`, or every problem in one error. The reverse:
the canonical text of a scenario and its digest. Decides the element of each dataclass, its attributes, their units and
ranges. `rules` decides which values are compatible; `scenario.xml` reads the file.

- `form.py`: the classes of the table's entries; `values.py`: the texts of single values;
- `elements.py`: the table; `_client.py`, `_broker_queue.py`, `_engine.py`, `replay.py`: its parts by subject;
- `build.py`: elements to dataclasses; `text.py`: a scenario to its canonical text.

Invariant: a scenario that is built, written and built again is equal. Read `form.py` first, then `elements.py`.
"""
