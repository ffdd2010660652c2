"""The output of results."""
