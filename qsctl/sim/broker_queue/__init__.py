"""A queue of any broker."""
