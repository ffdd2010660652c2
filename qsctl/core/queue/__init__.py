"""One shared reader queue [QS 2]: its samples, its consumers and its deadlines.

Input: writes, acknowledgments, consumers that join and leave, commands, and the time. Output, into the outbox: records,
messages and events. Read `shared_reader_queue.py` first, which assembles the parts, then `sample.py` and
`_delivery.py`.

The queue holds one object for each sample, and each step of a sample is a few calls. A prototype held *runs* instead:
samples of one writer with consecutive numbers that arrive in one frame. A run is one object that is enqueued, recorded,
sent, acknowledged and counted as a range. It is split if a threshold, a consumer's turn, a rejection, a lifespan, a
limit or a time-out divides it, and never joined; a single sample is a run of one. The table shows the prototype's rate
of completed lifecycles in the core, as a multiple of this code's: processor time, both measured in turn in one process,
payloads of 256 B, batches of 100, including statistics but not the creation of the messages; CPython 3.11. "All" is the
queue "everything on" of `tests/benchmarks/test_queue_core.py`. In repeated measurements figures below 2 differ by up to
0.03, those above by a tenth::

    samples in a run                              1 volatile, all    8 volatile, all    50 volatile, all
    one consumer acknowledges ranges                 0.98  0.98        2.6   3.1           7.7   9.7
    single samples of 100 writers in turn            0.99  0.97
    one consumer acknowledges each sample                              0.97  0.99          1.13  1.16
    the same, the latest sample first                                                      0.58  0.72
    one consumer rejects each tenth sample           0.96  0.93        1.50  1.50          2.3   2.2
    two consumers, each sample to the next one       0.93  0.96        0.89  0.93          0.98  1.07
    two consumers that reject each tenth             0.95  0.98        0.79  0.88          1.00  1.05
    a threshold of 24, the rest of a batch expires   0.93              2.3                 3.9

The criteria for further work were 3 for runs of 50 and 0.97 for single samples. Both are met, the second by
the last of nine variants: an index by writer and number instead of one by identity had 0.86 with 100 writers, and a
count in every message, record and event 0.95. The last variant leaves the messages of one sample as they are, has the
present index for the first identity of each run and a second one for the other identities of longer runs, and has two
methods, for one sample and for more, in each usual step: approximately 2,000 lines of code instead of 1,400. A held
sample takes 333 octets beyond its payload as a run of one (317 in this code), 66 in a run of 8, 17 in a run of 50. The
prototype was compared with the plain model of the property tests and with this code after each step, with frames of up
to 64 samples and acknowledgments of arbitrary ranges: 2,000 schedules without a difference. It did not implement
payloads that are on disk only, commands that move or insert samples, changes of settings, restarts and replicas; none
of these occurs in the table.

So runs are worthwhile if one consumer at a time is eligible and its client acknowledges ranges. If several are
eligible, the round robin [QS 2.10] makes each sample a run of one, and the core gains nothing: a higher rate with four
consumers needs another idea, such as a run with a stride. The core accounts for a fifth of the time that a sample costs
a service and its clients, so most of the gain is outside the core: frames, log, sessions and clients that process
ranges.
"""
