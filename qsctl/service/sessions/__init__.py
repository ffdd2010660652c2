"""Sessions side by side: a process each, and one that coordinates them (manual, section 3.3.9)."""
