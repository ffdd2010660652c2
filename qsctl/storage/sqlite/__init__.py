"""A stream of records in a database file: of a queue without in-memory state, and of the service's state [QS 2.14]."""
