"""Arrivals: what is sent to which client, and when, the same for every model."""
