"""The integration engine [CLOVERLEAF]: eight queues, a recovery database, all messages or none of a translation.

What comes in: inbound messages, acknowledgments of connections, threads, processes and connections that start and
stop, the time. What goes out, by `Ready`: records to store, messages that rest on them, events; and the next deadline.

    connection → inbound pre-TPS → inbound post-TPS ─ICL→ pre-translation → in translation → route detail → partial
               → post-translation (one a destination) ─ICL→ outbound pre-TPS → outbound post-TPS → connection

`message` has what is known of a message, `records` what survives, `database` what the records say together;
`lifecycle` which state follows which; `message_queue` the order; `dispositions` what a procedure may return where;
`procedures` runs them; `translation` makes results of a source, in two phases; `threads` and `engine` put the parts
together.
"""
