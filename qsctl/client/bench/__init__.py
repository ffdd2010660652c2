"""A benchmark of a queue: rates and latencies, over DDS or of an embedded service.

Input: a `BenchLoad`, and its queue. Output: `BenchResult`. Invariant: a latency is measured from the instant at which a
sample was due, not from that of writing; so delays of the service, the producer's window or the producer itself count
(no coordinated omission). Without a rate, samples are due when they are written, and the latencies are those at full
load.

Producers and consumers of `over_dds` are processes of this machine, whose monotonic clocks are one. Read `load` first.
"""
