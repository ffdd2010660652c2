"""A benchmark of a queue: rates and latencies, over DDS or of an embedded service.

Input: a `BenchLoad`, and its queue. Output: `BenchResult`. Invariant: a latency runs from the instant at which a sample
was due, not from the one at which it could be written; where the service, the producer's window or the producer itself
is late, the delay counts (no coordinated omission). Without a rate there is no such instant: samples are due when they
are written, and the latencies are those of full load.

Producers and consumers of `over_dds` are processes of this machine, whose monotonic clocks are one. Read `load` first.
"""
