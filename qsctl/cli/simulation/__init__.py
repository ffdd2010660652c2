"""Commands that simulate, and that summarize, compare and report what was simulated."""
