"""Listings of an integration engine's recovery and error databases [CLOVERLEAF]: read from files, printed again.

In: the text of a listing: short, long or extended form, of several locales, however large. Out: messages (`model.py`),
one at a time; selected (`choice.py`), counted by a common property (`groups.py`), written in the form that operators
and their scripts know (`write.py`). `from_database.py` does it for an engine of our own.

- `read.py`: the forms; `lines.py`: lines of any file; `columns.py`, `rows.py`: a table by its heading;
  `_extended_block.py`, `_fields.py`: `name : value`; `values.py`, `moments.py`, `_flags.py`, `payload_text.py`: values;
- `hl7_fields.py`: conditions on the fields of HL7 v2 messages; `order.py`: the order of a list, or of a queue;
- `figures.py`: an engine at one instant, compared with an earlier one; `series.py`: listings that a timer takes;
- `states.py`: the meaning of the number in the column State, and the operator's remedy.

Invariants: memory does not grow with the file; a value that is not understood is reported with its line and column, and
the rest is read; a field that a listing lacks is None or empty; writing and reading again gives equal messages.

Read first: `model.py`, then `read.py`.
"""
