"""Producer, consumer, requester and replier as state machines [QS 8], without wires, clocks or blocking.

They decide which samples are sent again, what is acknowledged, and which reply belongs to which request.
"""
