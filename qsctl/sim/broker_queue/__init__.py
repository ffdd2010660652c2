"""A queue of any broker: publishers, consumers, deliveries and returns, in a compiled loop.

In: a scenario of model `queue`. Out: a row of the log for each message, and one for each dead letter; counters; figures
of the queue and of each consumer beside them (`eventlog.run_folder.WorkedQueue`, `QueueWorker`). Invariants: the same
scenario and seed give the same rows; draws of a message depend on its publisher and number alone, whatever the settings
are; a message is in one place, and has one fate. Read first `_advance.py`, then `_delivering.py` and `_returning.py`;
`tests/sim/oracle_queue.py` is the same queue, plainly.

The rules, and where brokers state them (pages by their titles in the brokers' public documents; none of them states a
rule marked "our reading"):

- Delivery. A consumer is sent messages as long as fewer than its prefetch are unacknowledged; of several the one
  whose turn is longest ago is next (RabbitMQ, "Consumer Prefetch" and "Consumers"; JetStream, "Consumers":
  MaxAckPending). One that polls is answered at once if there is a message, with at most a batch, else when one comes
  or its wait is over (Amazon SQS, "Short and long polling"; Kafka, "Consumer Configs": max.poll.records). It polls
  when a server is idle and nothing that it received is left to begin; its prefetch counts what it has itself (our
  reading).
- Time-outs. A delivered message that is not acknowledged within the visibility time-out is ready again, while work on
  it goes on; a heartbeat begins the time anew (Amazon SQS, "Visibility timeout": ChangeMessageVisibility; JetStream:
  AckWait, BackOff, and acknowledgments of progress). A later acknowledgment counts until the message is delivered
  again ("DeleteMessage": the latest receipt handle), always (JetStream), or not at all.
- Failures. Work fails by the class's probability at each attempt, always on a poisoned message, and where it begins in
  an outage. The message is rejected, or there is no answer. After max-deliveries it is dead when it would come back
  (RabbitMQ, "Quorum Queues": delivery-limit; Amazon SQS, "Dead-letter queues": maxReceiveCount; JetStream: MaxDeliver).
- Order. What comes back is before all that were never delivered, in the order in which it came back: RabbitMQ returns
  a message to its place or near the head ("Negative Acknowledgements"), JetStream delivers redeliveries first; or
  behind all. Priorities: the highest first ("Priority Queues"). Keys: one message of a key at a time; a free key has
  its turn by when it became free (Amazon SQS, "FIFO queue delivery logic", of whose batches from one group at a time
  we model none). Partitions: a key's is a hash of it, without keys in turn; consumers have them in turn, and nothing
  is delivered for the length of a rebalance after one came or left (Kafka, "Consumer groups"). The next message of a
  partition is delivered when the one before is done: a fetch of several is then only a prefetch, and with a round
  trip of 0 costs no time. Exclusive: the consumer that is there for longest (RabbitMQ, "Single Active Consumer").
- Limits. A message that would exceed them is refused, dropped, or waits; with drop-head it enters, is delivered if it
  may, and then what would be delivered next is dropped until they hold (RabbitMQ, "Queue Length Limit"). They hold
  for publishing: what comes back may exceed them (our reading). Times to live are over when they are, or for the
  message that is next (RabbitMQ, "Time-To-Live and Expiration": at the head); what is with a consumer does not
  expire, but when it comes back. Dead letters are those dropped from the head, expired, or dead (RabbitMQ, "Dead
  Letter Exchanges").
- Consumers. One that leaves loses what it works on; its messages return at once (RabbitMQ: the channel closes), or
  when they time out (Amazon SQS). An acknowledgment on its way counts. Scaling compares all messages in the queue
  with the consumers that are there or start (KEDA, "RabbitMQ Queue": queue length; AWS, "Scaling based on Amazon
  SQS": backlog per instance); a consumer that ends returns what it has not begun and finishes the rest.
- Requests are publications, polls, acknowledgments (one for a batch of them), rejections and heartbeats.

Not modelled: the broker's own processing time, memory and disk alarms, replication inside the broker, networks that
lose or reorder; random delays of the network; several queues behind one exchange; publishers' confirms in flight.
"""
