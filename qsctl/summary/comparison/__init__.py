"""The comparison of two runs or sweeps: the differences of their settings and of their measures.

Input: two folders. Output: paired differences with intervals, and a sentence. Read `compare.py` first.
"""
