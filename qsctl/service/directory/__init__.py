"""A service that lives in a state directory and runs inside each command.

Input: a directory and one command. Output: its reply, and a directory that a killed command leaves usable. Read
`embedded.py` first, then `_embedded_instance.py`.
"""
