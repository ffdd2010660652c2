"""Commands that read listings of runs and brokers."""
