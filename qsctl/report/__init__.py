"""Reports: one self-contained page of HTML for a run, a sweep, a comparison or a sizing.

In: the tables that `summary` made, or the JSON that `qsctl compare` and `qsctl size` print. Out: a `Page`, and the file
of it: no script, no font, no picture that would have to be fetched.

- `page.py`: what a page holds, whatever it is about; `html.py` and its template: the file;
- `run_report.py`, `sweep_report.py`, `document_report.py`: what is shown of each;
- `charts.py`: charts as static SVG; `words.py`: figures as text, the same in every report.

Invariants: every measure is `summary`'s; the same figures give the same bytes; text from a run is escaped.

Read first: `page.py`, then `run_report.py`.
"""
