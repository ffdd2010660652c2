"""Spark's Java, session and executors, and the conversion of its errors to single messages with a remedy.

Input: options, environment and defaults. Output: one quiet session for each process, or the existing one of a platform.
Read `session.py` first.
"""
