"""Listings of an integration engine's recovery and error databases [CLOVERLEAF]: read from files, printed again.

In: the text of a listing: short, long or extended form, of several locales, however large. Out: messages (`model.py`),
one at a time; which of them are meant (`choice.py`), counted by what they have in common (`groups.py`), written in the
form that operators and their scripts know (`write.py`). `from_database.py` has the same of an engine of our own.

- `read.py`: the forms; `lines.py`: lines of any file; `columns.py`, `rows.py`: a table by its heading;
  `extended_block.py`, `fields.py`: `name : value`; `values.py`, `moments.py`, `flags.py`, `payload_text.py`: values;
- `hl7_fields.py`: conditions on the fields of HL7 v2 messages; `order.py`: in which order a list, or a queue, is;
- `figures.py`: an engine at one instant, compared with an earlier one; `series.py`: listings that a timer takes;
- `states.py`: what the number in the column State means, and what an operator does about it.

Invariants: memory does not grow with the file; a value that is not understood is reported with its line and column, and
the rest is read; what a listing does not say is None or empty; what is written and read again is equal.

Read first: `model.py`, then `read.py`.
"""
