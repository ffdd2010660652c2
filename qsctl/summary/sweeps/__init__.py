"""Many runs: sweeps, sizing, precision, rare events, and questions about one setting.

Input: a scenario and what to vary of it. Output: figures of each point with their intervals, kept in a folder as they
come. Read `sweep.py` first, then `size.py`.
"""
