"""A service as a member of a replication cluster: the log of its replicas, and its members [QS 7].

Input: frames of other members. Output: writes to the log, and frames that are sent once those are durable. Read
`replication.py` first, then `_replica_writes.py`.
"""
