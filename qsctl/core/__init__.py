"""The pure state machines: no clock, no I/O, no randomness, no logging. The time is an argument of every call."""
