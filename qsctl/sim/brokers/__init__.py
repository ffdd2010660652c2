"""Queues of other brokers: presets in their own words, what their tools list, and scenarios of both.

In: a preset's name, settings in the broker's words, and the output of its tools. Out: a scenario of the model `queue`
as text, every value of it with where it is from, and the same scenario with one setting varied.

- `kinds.py`, `settings.py`: the brokers, and what a setting is: its word, its texts, its place in a scenario;
- `presets.py`: the table of settings with defaults and public sources, and what is modelled of each broker;
- `listed`: what `rabbitmqctl`, `nats`, `aws sqs` and `kafka-consumer-groups` print, read;
- `draft.py`: preset, listing and what the user gives, as one scenario; what is not known is assumed, and said so;
- `variation.py`: the values of a setting that is varied.

Invariants: a value that is given goes before one that is listed, that before the default; every default has its public
source; what is written names where each value is from, and is read again as any scenario.

Read first: `settings.py`, then `draft.py`.
"""
