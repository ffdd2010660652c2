"""Commands that monitor services, runs, brokers and engines: checks, listings, explanations, waits and metrics."""
