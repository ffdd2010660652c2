"""The clients of a broker: a client's turn to send, its application, its absences, and queues that clients share.

Kernels over record arrays: an arrival, a timer or an acknowledgment of one client in; messages moved from its `queues`
to `transmission` out. Decides when a client is blocked, when it sends again, when its application acknowledges, and
what becomes of its messages when it disconnects. Does not decide the order between clients: that is `runs/advance.py`.

- `connection.py`: what every client does, one text for plain clients and for those with a trait;
- `traits.py`: what only clients with an endpoint, eliding, loss, pauses, absences or weights do;
- `application.py`: readers, and the acknowledgments of guaranteed messages by library and application;
- `durable_queue.py`: a durable queue whose messages several clients share, each by a flow;
- `presence.py`: disconnections, and what is held when the run ends.

Always: a message is with one client, or at one durable queue. Read `connection.py` first.
"""
