"""The integration engine [CLOVERLEAF]: eight queues, a recovery database, all or none of a message's results.

In: inbound messages, acknowledgments of connections; threads, processes and connections that start and stop; the time.
Out: records to store, messages that rest on them, events, and the next deadline.

    connection → inbound pre-TPS → inbound post-TPS ─ICL→ pre-translation → in translation → route detail → partial
               → post-translation (one a destination) ─ICL→ outbound pre-TPS → outbound post-TPS → connection

- `engine.py`: the parts put together; `site.py`: what its threads have in common: time, ledger, agenda, entering and
  leaving a queue; `protocol_thread.py`, `translation_thread.py`: what each thread does; `hop.py`: messages between
  them;
- `message.py`, `lifecycle.py`: a message and which state follows which; `message_queue.py`: the order in a queue;
- `records.py`, `database.py`, `ledger.py`: what survives; `recovery.py`: where a start finds each message;
- `procedures.py`, `dispositions.py`, `tps.py`: what a procedure may return, and what follows from it;
- `routes.py`, `translation.py`: results of a source, in two phases.

Invariants: a message with the flag USERDB has a record for each of its steps, and its sender is answered after the
first one; a translation's results are durable in the partial queue before the removal of their source commits them; a
message leaves a queue in the order of priority and place.

Read first: `message.py`, `site.py`, then `protocol_thread.py`.
"""
