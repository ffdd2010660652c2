"""One shared reader queue [QS 2]: its samples, its consumers and its deadlines.

Input: writes, acknowledgments, consumers that join and leave, commands, and the time. Output, into the outbox: records,
messages and events. Read `shared_reader_queue.py` first, which assembles the parts, then `sample.py` and
`_delivery.py`.

The queue holds one object for each sample, and each step of a sample is a few calls. A prototype holds *runs* instead:
samples of one writer with consecutive numbers that arrive in one frame. A run is one object that is enqueued, sent,
acknowledged and counted by ranges, with one octet of state for each sample; samples for several consumers in turn are
one delivery with a step. A sample with an unusual step becomes an object of its own and never joins its run again. The
table shows the rate of completed lifecycles in the core, as a multiple of this code's: processor time, both measured in
turn in one process, payloads of 256 B, batches of 100, including statistics but not the creation of the messages;
CPython 3.11. "All" is the queue "everything on" of `tests/benchmarks/test_queue_core.py`; runs of 1 are single samples
of 100 writers in turn. Figures below 2 differ by up to 0.05 in repeated measurements, those above by a tenth::

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
    each step is an event, for a recording           0.99    0.92    0.97

The criteria for further work were 3 for runs of 50 and 0.97 for single samples; both are met. An earlier prototype
divided a run at each consumer's turn and had 0.89 to 1.07 with two consumers, but up to 2.3 with rejections and 3.9
with expiry, because it also rejected and expired ranges. The prototype has 930 lines more than this package. A held
sample takes 91 octets beyond its payload in a run of 8, 22 in a run of 50, and 350 by itself, as here. The plain model
of the property tests, this code and a replay of the records agree with it, for frames of up to 64 samples and
acknowledgments of arbitrary ranges; not compared are runs whose samples a command moves, changes of settings, and
captures. Queues that are replicated or route replies hold single samples, and a persistent queue writes a record for
each sample and step.

The core accounts for a fifth of the processor time that a sample costs a service and its clients, some 3.5 of 18 µs. So
runs in the core alone make the whole at most 1.2 times as fast. If all of the service gained as much as the core, the
whole would be twice as fast, since the clients' 7 µs remain. Runs are therefore worthwhile only with frames, sessions,
records and clients that process ranges; until these exist nothing creates a run, and this code holds single samples.
"""
