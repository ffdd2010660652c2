"""The integration engine [CLOVERLEAF]: eight queues, a recovery database, all or none of a message's results.

In: inbound messages, acknowledgments of connections; starts and stops of threads, processes and connections; the time.
Out: records to store, messages that rest on them, events, and the next deadline.

    connection → inbound pre-TPS → inbound post-TPS ─ICL→ pre-translation → in translation → route detail → partial
               → post-translation (one a destination) ─ICL→ outbound pre-TPS → outbound post-TPS → connection

- `engine.py`: the assembly of the parts; `_site.py`: the state that its threads share: time, ledger, agenda, entry and
  exit of queues; `_protocol_thread.py`, `_translation_thread.py`: the work of each thread; `_hop.py`: messages between
  them;
- `message.py`, `_lifecycle.py`: a message and the transitions between its states; `_message_queue.py`: the order in a
  queue;
- `records.py`, `database.py`, `_ledger.py`: the durable state; `_recovery.py`: the place of each message after a
  restart;
- `procedures.py`, `dispositions.py`, `_tps.py`: the results that a procedure may return, and their effects;
- `routes.py`, `_translation.py`: the results of a source message, in two phases.

Invariants: a message with the flag USERDB has a record for each of its steps, and its sender is answered after the
first one; a translation's results are durable in the partial queue before the removal of their source commits them;
messages leave a queue in the order of priority and position.

Read first: `message.py`, `_site.py`, then `_protocol_thread.py`.
"""
