"""Spark itself: its Java, its session, its executors, and each of its errors as one message with a remedy.

Input: options, environment and defaults. Output: one quiet session a process, or the one that a platform has already.
Read `session.py` first.
"""
