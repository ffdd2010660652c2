"""The queues of a client and their endpoints: admission, discards, and the order of sending [SOL-QUEUES] [P7500].

Kernels over record arrays. Input: a queue and a message. Output: the message in the queue's list, discarded and
counted, or handed on. Decides admission, which message is discarded, the order of the schedulers, which messages wait
at an endpoint, and which message replaces an older one of its topic. When a client may send is decided by `clients`.

- `priority_queue.py`: admission, discard of the oldest, the discard indication, and the three schedulers;
- `endpoint.py`: guaranteed messages behind G-1; `eliding.py`: at most one message of a topic in a queue;
- `watch.py`: the importance of a state, its closeness to a rare event, for `sim.splitting`.

Always: a queue's length and work units are those of the messages in its list. Read `priority_queue.py` first.
"""
