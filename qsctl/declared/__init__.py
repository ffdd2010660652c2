"""Kinds of values with their ranges, and the problems of the files that hold them, for every table of declared values.

In: texts, as service files, scenarios, client profiles, listings and command lines have them. Out: values, texts of
values, and problems that name file, line, element, value found, value allowed and remedy.

- `values.py`: a `Value` is one kind: how a text is read and written, and the words for what is allowed;
- `problems.py`: a `Problem`, the `ProblemList` of one file, and `InvalidFile`, the one error that carries them all.

Invariants: a kind is declared once, and its range, its words and its error follow; nothing here knows a table, a format
or a file's structure.

Read first: `values.py`.
"""
