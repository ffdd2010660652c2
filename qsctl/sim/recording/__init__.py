"""What models in Python record of a run: counters, and a summary of the events."""
