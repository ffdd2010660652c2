"""`qsctl top`: queues and consumers as they change, on a terminal; of a service, a broker, an engine or a replayed run.

In: readings of a source (`look`), and keys. Out: lines of text. `_display` is the state that keys change, `_screen`
formats a reading as lines, `_terminal` alone uses the terminal. Read `look` first.
"""
