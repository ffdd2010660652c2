"""Reports on a run, a sweep, a comparison or a sizing, above all as a self-contained HTML page.

In: tables from `summary`, or the JSON output of `qsctl compare` and `qsctl size`. Out: a `Page`, and its file, which
refers to no external script, font or picture.

- `page.py`: the content of a page on any subject; `_html.py` and its template: the HTML file;
- `run_report.py`, `sweep_report.py`, `document_report.py`: the content for each subject;
- `_charts.py`: charts as static SVG; `_words.py`: figures as text, the same in every report.

Invariants: `summary` computes every measure; equal figures yield an identical file; text from a run is escaped.

Read first: `page.py`, then `run_report.py`.
"""
