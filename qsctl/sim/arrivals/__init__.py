"""Arrivals: who is sent what, and when, the same for every model."""
