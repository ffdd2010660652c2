"""A running service: the driver, its environment, and the changes that are asked of it while it runs.

Input: a configuration and an `Environment`. Output: the turns of an engine, on the wall clock or a virtual one.
All access to the machine is through the environment. Read `loop.py` first, then `environment.py`.
"""
