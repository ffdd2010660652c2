"""The output of results: as tables, documents, CSV and templates. Read `results.py` first, then `render.py`."""
