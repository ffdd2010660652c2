"""Types and frames on the wire: what a peer sends and receives, octet by octet.

Input and output: octets on one side, messages of the core or plain data on the other. Octets of a peer are a claim:
each reader checks lengths before it trusts them. Read `wire_types.py` first, then `frames.py`.
"""
