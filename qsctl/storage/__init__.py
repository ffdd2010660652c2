"""Where records survive (manual, section 2.14)."""
