"""Queues of other brokers: presets in their own words, the listings of their tools, and scenarios of both.

In: a preset's name, settings in the broker's words, and the output of its tools. Out: a scenario of the model `queue`
as text, every value of it with its origin, and the same scenario with one setting varied.

- `kinds.py`, `settings.py`: the brokers, and a setting's description: its word, its texts, its place in a scenario;
- `presets.py`: the table of settings with defaults and public sources, and the modelled parts of each broker;
- `listed`: readers of the output of `rabbitmqctl`, `nats`, `aws sqs` and `kafka-consumer-groups`;
- `draft.py`: preset, listing and the user's values, as one scenario; unknown values are assumed, with a note;
- `variation.py`: the values of a setting that is varied.

Invariants: a given value precedes a listed one, and that the default; every default has its public source; the written
text names the origin of each value, and is read again like any scenario.

Read first: `settings.py`, then `draft.py`.
"""
