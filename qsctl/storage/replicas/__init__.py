"""The log that all replicas of a process share, and the stream of one replica in it [QS 7.1]."""
