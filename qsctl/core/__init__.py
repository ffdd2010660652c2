"""The queue, service and integration engines as pure state machines.

They use no clock, I/O, randomness or logging: every call receives the time as an argument, and a driver carries out the
resulting writes and sends.
"""
