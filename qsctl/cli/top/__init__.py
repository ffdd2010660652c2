"""`qsctl top`: queues and consumers as they change, on a terminal; of a service, or of a run that is replayed.

In: looks at a service or a run (`look`), and keys. Out: lines of text. `display` is what keys have made of the screen,
`screen` lays a look out in lines, `terminal` alone knows that there is a terminal. Read `look` first.
"""
