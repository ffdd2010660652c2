"""The exchange of messages between the members of a cluster: encoding, fragments and their topic [QS 7.1].

Input: messages of one member. Output: the same messages at another member, each whole or not at all. Read
`replica_link.py` first.
"""
