"""What the tools of RabbitMQ, NATS, SQS and Kafka list of their queues: limits, defaults that were changed, and depths.

In: the output of a tool as it is, with what a terminal wrote around it. Out: `ForeignQueue`, one a queue, with its
settings in the broker's own words.

- `model.py`: what is known of a queue, whatever it was read from, and how several files of one queue become one;
- `read.py`: which tool's output a file is; `documents.py`: JSON with checked values;
- `rabbitmq.py`, `rabbitmq_policies.py`, `nats.py`, `sqs.py`, `kafka.py`: one tool each.

Invariants: a value that cannot be read costs that value, and is a note with file and line; only a file of which nothing
is read is an error. What a file has not is None, never a default: defaults are the preset's.

Read first: `model.py`.
"""
