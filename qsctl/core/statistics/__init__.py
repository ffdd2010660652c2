"""Counters and statistic variables of a queue [QS 3.3.4.3 and 6.2], folded from events."""
