"""The pure state machines: no clock, no I/O, no randomness, no logging. Every call is told the time."""
