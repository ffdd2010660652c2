"""Load on a queue, and what it took: rates and latencies, over DDS or of an embedded service.

Comes in: a `BenchLoad`, and the queue it is for. Goes out: `BenchResult`. Always holds: a latency runs from the instant
at which a sample was due, not from the one at which it could be written; where the service, the producer's window or
the producer itself is late, what is late counts (no coordinated omission). Without a rate there is no such instant:
samples are due when they are written, and the latencies say what full load is like.

Producers and consumers of `over_dds` are processes of this machine, whose monotonic clocks are one. Read `load` first.
"""
