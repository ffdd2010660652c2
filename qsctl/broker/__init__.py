"""Clients of a broker's SEMP v2 and v1, and of a Prometheus server's HTTP API.

In: an address, credentials, and names of collections or a query. Out: the models of `profiles.listings` and
`profiles.formats`, as when they are read from files.

- `access.py`: addresses and credentials; `repr` and `str` of a secret hide it, so that none is printed by accident;
- `client.py`: HTTP or HTTPS requests to one origin: deadlines, sizes, retries, the rate of requests, verified TLS;
- `semp.py`: the collections of SEMP v2 page by page, and the `show` listings of SEMP v1;
- `prometheus.py`: range queries of a Prometheus server.

Invariants: requests are sent to the configured origin alone, so that no other server receives the credentials; every
reply is bounded in time, size and pages; whatever a server sends, the outcome is a result or one error; only
`SempBroker.change_profile` and `create_profile` change a broker.

Read first: `client.py`, then `semp.py`.
"""
