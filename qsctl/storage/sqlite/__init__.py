"""A store in a database file, for a queue without in-memory state and for the service's state [QS 2.14]."""
