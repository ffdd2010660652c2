"""Applications without qsctl on a service's queues, by `schemas/qsctl_queue.idl` and by the queue's own type.

`_intake` receives their samples, in domain instances of their own (`flow`), since a full reader blocks the library's
receiving threads of its instance. `_answers` acknowledges samples to producers that request it. `consumers` serves the
consumers. Read `topic.py` and `consumers.py` first.
"""
