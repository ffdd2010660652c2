"""The log of a process's replicas, and what one replica has in it [QS 7.1]."""
