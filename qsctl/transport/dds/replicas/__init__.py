"""The exchange between members of a cluster: letters, fragments and their topic [QS 7.1].

Input: messages of one member. Output: the same at another, whole or not at all. Read `replica_link.py` first.
"""
