"""The process of a service: its start, background, supervisor, log, memory and metrics port.

Input: a command line and signals. Output: a running `run.loop`, lines of a log, metrics and probes. Read `start.py`
first, then `daemon.py`.
"""
