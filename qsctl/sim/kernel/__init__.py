"""What compiled models share; `jit.py` is the only importer of numba."""
