"""The client side of the transport, in application programs: a client's domain and its ports.

Input: samples and acknowledgments of a program. Output: frames to services, and samples from them. Read
`client_domain.py` first.
"""
