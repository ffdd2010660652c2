"""Listings of a broker's CLI [SOL-QUEUES] and replies of SEMP v1: read to one model, written as the broker writes them.

In: captured text of `show client … stats queue` and its siblings, with line breaks or flowed into one line; XML
replies, in one or several pages. Out: the dataclasses of `model.py`, and from them the same text, SEMP, or Prometheus
metrics.

- `model.py`: the content of a listing, independent of its form;
- `read.py`: the kind of a text, and its parts; `captures.py`, `terminal.py`: the parts of a captured file; `_text.py`,
  `_blocks.py`, `_labelled.py`, `_queue_rows.py`, `_heading_table.py`, `_table_kinds.py`, `_usage_lines.py`,
  `_discard_lines.py`: the parts of the CLI's text; `semp.py`: the XML; `semp_v2.py`: the JSON of the monitoring
  interface; `_csv_rows.py`, `_scrape.py`: CSV, and the output of an exporter for Prometheus;
- `_layout.py`, `labels.py`, `_columns.py`, `write.py`: the broker's layout; `prometheus.py`;
- `discards.py`: causes of discards and their levers; `slowness.py`: the limits of a slow subscriber; `wildcard.py`:
  names with wildcards.

Invariants: what is written and read again is equal; a value that a listing does not give, or that cannot be read, is
None; a problem names file and line, and only a file of which nothing can be read is an error.

Read first: `model.py`, then `read.py`.
"""
