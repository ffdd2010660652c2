"""Reports of what does not work with a peer: mismatches, unreadable messages, the library's own log.

Input: announcements, refused octets, lines of the library. Output: lines of the service's log, at a limited rate.
Read `incompatible_peers.py` first.
"""
