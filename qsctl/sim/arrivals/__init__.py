"""Arrivals: the times, clients and sizes of messages, the same for every model.

In: the traffic of a scenario and the number of a repetition. Out: windows of `ARRIVAL` rows in time order
(`streams.ArrivalStreams.window`), each with time, client, bytes, topic and tag; for models in Python one after the
other (`cursor.ArrivalCursor`).

`streams.py` lays out one stream for each client (or for a fan-out, or a trace) with keys of its own; `draw.py` draws
gaps, sizes and topics in compiled code; `_merge.py` puts the streams of a window into time order; `trace.py` reads
recorded arrivals; `branching.py` draws them anew from an instant on.

Invariants: draws are counter-based, hence a change of one stream, limit or profile moves no arrival of another; the
division of time into windows changes no row; arrivals of one instant are in the order of their streams.

Read first: `streams.py`.
"""
