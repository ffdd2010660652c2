"""Two runs or sweeps side by side: the differences of their settings and of their measures.

Input: two folders. Output: paired differences with intervals, and a sentence. Read `compare.py` first.
"""
