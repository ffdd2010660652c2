"""`qsctl web`: the queues of a service, a run, a broker or an engine in a browser on this machine.

In: sources of looks (`qsctl.cli.top`) and requests of browsers. Out: pages, JSON and streams of events on loopback.
What always holds: nothing is answered that `security.Gate` has not let through; a source is polled once for all
browsers; what a browser, a queue's name or a payload contains costs at most its own request. A part of the page is a
module with `routes(context)` and `view(context)` here, and an ES module with `mount(element, state)` in `static`. Read
`server` first, then `security`.
"""
