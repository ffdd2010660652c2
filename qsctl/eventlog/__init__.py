"""The event log: Arrow schemas, a writer that keeps up with the simulator, a reader."""
