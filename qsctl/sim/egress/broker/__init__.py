"""The broker around its clients' queues: ingress, subscriptions and slow subscribers [SOL-QUEUES].

Arrivals in time order in; the arrivals that reach a queue, and rows and events of the others, out. Decides which
messages are refused at the ingress or match no subscription, and which clients are reported as slow. Does not decide
what becomes of a message in a queue: that is `queues`.

- `ingress.py`: the ingress applied to arrivals; `admission.py`: its kernel, with a share of the buffers a publisher;
- `subscriptions.py`: the limit of a client's subscriptions;
- `slow_subscribers.py`: the blocked seconds of each client in the last minute.

Always: without a limit in the scenario the arrivals pass unchanged. Read `ingress.py` first.
"""
