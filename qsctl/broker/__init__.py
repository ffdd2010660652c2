"""Ask a broker, or the monitoring server beside it, over HTTP: SEMP v2 and v1, and the HTTP API of Prometheus.

In: an address, credentials, and what to ask. Out: the models of `profiles.listings` and `profiles.formats`, as from
files.

- `access.py`: addresses and credentials; a secret has no text of its own, so that none is printed by accident;
- `client.py`: one origin over HTTP or HTTPS: deadlines, sizes, retries, the rate of requests, verified TLS;
- `semp.py`: the collections of SEMP v2 page by page, and the listings that only SEMP v1 has;
- `prometheus.py`: a range of a Prometheus server.

Invariants: only the origin that was named is asked, so that credentials go nowhere else; every answer is bounded in
time, size and pages; whatever a server sends, the outcome is a result or one error; nothing is changed on a broker but
by `SempBroker.change_profile` and `create_profile`.

Read first: `client.py`, then `semp.py`.
"""
