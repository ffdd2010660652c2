"""Commands that create, read, change, run and stop a service."""
