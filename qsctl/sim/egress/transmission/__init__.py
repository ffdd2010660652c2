"""From the TCP transmit queue over port and link to the client's receive buffer, and the acknowledgment back.

Kernels over record arrays: a message that may be sent in; the times when it leaves the port, reaches the client and is
acknowledged out. Decides these times and, where a link loses segments, which are sent again. Does not decide which
message is next: that is `queues`; nor what the application makes of it: that is `clients`.

- `port.py`: the port's line, which its clients share; `lossless.py`: a connection that loses nothing;
- `tcp.py`, `congestion.py`: a connection that loses segments, and its congestion window;
- `receiver.py`: the client's receive buffer and the readers that empty it.

Always: acknowledgments of one connection never overtake one another. Read `port.py` and `lossless.py` first.
"""
