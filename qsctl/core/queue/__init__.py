"""One shared reader queue [QS 2]: its samples, its consumers and its deadlines.

Input: writes, acknowledgments, consumers that join and leave, commands, and the time. Output, into the outbox: records,
messages and events. Read `shared_reader_queue.py` first, which assembles the parts, then `sample.py` and
`_delivery.py`.

A queue holds samples by themselves or as *runs* (`_run.py`): samples of one writer with consecutive numbers that
arrived in one frame and differ in number and payload only. A run is one object that is enqueued, sent, acknowledged,
recorded and counted by ranges, with one octet of state for each sample; samples for several consumers in turn are one
delivery with a step. A sample with an unusual step becomes an object of its own and never joins its run again. The
transport makes runs of at least `RUN_SAMPLES_MIN` samples (`transport.dds.wire.frames`). Stores keep records by
samples; a replay joins those that nothing distinguishes (`joining.py`), so that a restart restores runs. A frame that a
limit, a duplicate or the size of a payload divides enters as several runs. Samples are enqueued one by one where
others wait outside, and in a replicated queue where one may have been written before. Replies to different requests
are never in one run: each has its own related identity. Metrics, recordings and traces are made from one event a range
and step.

The table shows the rate of completed lifecycles in the core, as a multiple of that of single samples: processor time,
both measured in turn in one process, payloads of 256 B, batches of 100, including statistics but not the creation of
the messages; CPython 3.11. "All" is the queue "everything on" of `tests/benchmarks/core_queues.py`; runs of 1 are
single samples of 100 writers in turn, beside a version without runs. Figures below 2 differ by up to 0.05 in repeated
measurements, those above by a tenth. "Persistent" wrote a record for each sample::

    samples in a run                                    1       8      50
    one consumer acknowledges ranges, volatile       0.98     2.2     7.3
    the same, all                                    0.99     2.6     8.5
    the same, persistent                             0.97    1.56     3.8
    two consumers, each sample to the next one       1.00    1.49     4.9
    four consumers                                   1.00    1.20     4.0
    one consumer acknowledges each sample                    0.91    1.10
    one consumer rejects each tenth sample           0.98    1.14    1.68
    two consumers that reject each tenth             0.98    0.98    1.56
    a threshold of 24, the rest of a batch expires   0.97    0.89    1.13

The processor time of a sample in microseconds, before and after runs, by the stacks of the service process: one
producer of samples of 256 B as fast as they are taken, one consumer (`tests/benchmarks/dds_peers.py`), a quiet machine
with two processors. Most of what is left is in the DDS library, in system calls and in the clients' Python::

                      volatile      persistent
    wire in          2.8   2.1       2.4   2.0
    core             8.8   1.7       8.8   2.3
    log                              5.4   4.8
    wire out         4.8   3.9       4.3   2.7
    rest             0.9   0.4       1.4   0.4
    service         17.3   8.1      22.3  12.2
    both clients    17.1   9.0      20.3  11.4

A single sample is not a run of one: runs of one have 0.17 to 0.22 times the rate of single samples (medians of 15
pairs, volatile, persistent and everything on).

A held sample takes 91 octets beyond its payload in a run of 8, 22 in a run of 50, and 350 by itself. The plain model of
the property tests, single samples and a replay of the stored records agree with runs, for frames of up to 64 samples
and acknowledgments of arbitrary ranges.
"""
