"""The broker around its clients' queues: ingress, subscriptions and slow subscribers [SOL-QUEUES].

Input: arrivals in time order. Output: the arrivals that reach a queue, and the log rows and events of the others.
Decides which messages are refused at the ingress or match no subscription, and which clients are reported as slow. The
admission to a queue is decided by `queues`.

- `ingress.py`: the ingress applied to arrivals; `_admission.py`: its kernel, with a fair share of the buffers for each
  publisher;
- `subscriptions.py`: the limit of a client's subscriptions;
- `slow_subscribers.py`: the blocked seconds of each client in the last minute.

Always: without a limit in the scenario the arrivals pass unchanged. Read `ingress.py` first.
"""
