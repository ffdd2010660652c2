"""Studies of many runs: sweeps, sizing, precision, rare events, and the effects of one setting.

Input: a scenario and the settings to vary. Output: figures of each point with their intervals; a sweep stores results
in a folder as they are computed. Read `sweep.py` first, then `size.py`.
"""
