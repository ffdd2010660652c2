"""Confidence intervals and tests of means and percentiles, each with its stated error.

Input: figures of replications, or of one run over time. Output: intervals, decisions, and the evidence for them as
text. The stated confidence is checked by simulation (`tests/summary`). Read `statistics.py` first.
"""
