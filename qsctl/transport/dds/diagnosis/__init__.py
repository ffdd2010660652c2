"""Diagnosis of peers: incompatible endpoints, invalid messages, and the DDS library's own log.

Input: announcements, refused octets, lines of the library. Output: lines of the service's log, at a limited rate. Read
`incompatible_peers.py` first.
"""
