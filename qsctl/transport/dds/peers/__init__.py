"""Other processes as DDS discovery announces them: their endpoints, types, names and addresses.

Input: samples of the built-in topics. Output: plain data, bounded and checked. Read `discovery.py` first.
"""
