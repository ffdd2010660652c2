"""The command line: commands return results, and `output/render.py` prints them. Read `app.py` first."""
