"""The end of programs: the domain of a client and its ports.

Input: samples and acknowledgments of a program. Output: frames to services, and samples of theirs. Read
`client_domain.py`.
"""
