"""Sessions in parallel: a process for each group of sessions, and a coordinator [QS 3.3.9]."""
