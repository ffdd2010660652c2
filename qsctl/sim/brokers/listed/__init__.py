"""Readers of the listings of RabbitMQ, NATS, SQS and Kafka: limits, changed defaults, and depths of queues.

In: the unchanged output of a tool, with a terminal's text around it. Out: `ForeignQueue`, one a queue, with its
settings in the broker's own words.

- `model.py`: the figures of a queue, independent of their source, and the merge of several files of one queue;
- `read.py`: which tool's output a file is; `documents.py`: JSON with checked values;
- `_rabbitmq.py`, `_rabbitmq_policies.py`, `_nats.py`, `_sqs.py`, `_kafka.py`: one tool each.

Invariants: only the value itself is lost where it cannot be read, with a note of file and line; only a file of
which nothing is read is an error. A value that a file lacks is None, never a default: defaults are the preset's.

Read first: `model.py`.
"""
