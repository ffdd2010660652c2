"""From the TCP transmit queue over port and link to the client's receive buffer, and the acknowledgment back.

Kernels over record arrays. Input: a message that may be sent. Output: the times at which it leaves the port, reaches
the client and is acknowledged. Decides these times and, where a link loses segments, which segments are sent again. The
next message to send is decided by `queues`; its processing by the application by `clients`.

- `port.py`: the port's line, which its clients share; `lossless.py`: a connection that loses nothing;
- `tcp.py`, `congestion.py`: a connection that loses segments, and its congestion window;
- `receiver.py`: the client's receive buffer and the readers that empty it.

Always: acknowledgments of one connection never overtake one another. Read `port.py` and `lossless.py` first.
"""
