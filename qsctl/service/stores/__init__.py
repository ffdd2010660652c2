"""The stores of a service: the file of each record, syncs, failures, and the way back at a start [QS 2.14].

Input: batches of records. Output: what is durable, and at a start the records again. A failure of a store suspends
its queue and no other. Read `stores.py` first, then `recovery.py` and `restore.py`.
"""
