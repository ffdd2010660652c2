"""`qsctl web`: the queues of a service, a run, a broker or an engine in a browser on this machine.

In: sources of listings (`qsctl.cli.top`) and HTTP requests of browsers. Out: pages, JSON and server-sent events, on
loopback. Invariants: `security.Gate` checks every request first; a source is polled once for all browsers; a fault in a
request, in a queue's name or in a payload fails at most its own request. A part of the page is a module with
`routes(context)` and `view(context)` here, and an ES module with `mount(element, state)` in `static`. Read `server`
first, then `security`.
"""
