"""Sessions side by side: a process each, and one that coordinates them [QS 3.3.9]."""
