"""The clients of a broker: connection, application, absences, and queues that several clients share.

Kernels over record arrays. Input: an arrival, a timer or an acknowledgment of one client. Output: messages moved from
its `queues` to `transmission`. Decides when a client is blocked, when it sends again, when its application
acknowledges, and the outcome of its messages when it disconnects. The order between clients is decided by
`runs/_advance.py`.

- `connection.py`: the steps of every client, one text for plain clients and for those with a trait;
- `traits.py`: the steps of clients with an endpoint, eliding, loss, pauses, absences or weights;
- `_application.py`: readers, and the acknowledgments of guaranteed messages by library and application;
- `durable_queue.py`: a durable queue whose messages several clients share, each by a flow;
- `presence.py`: disconnections, and the messages still held when the run ends.

Always: a message belongs to one client, or to one durable queue. Read `connection.py` first.
"""
