"""The command line: commands return results, `render.py` prints them."""
