"""Applications without qsctl on a service's queues, by `schemas/qsctl_queue.idl` and by the queue's own type.

Samples come in through `intake`, which reads in a domain instance of its own (`flow`), since a reader that is not read
stops the library's threads there; producers that ask are answered by `answers`; `consumers` has those who consume.
"""
