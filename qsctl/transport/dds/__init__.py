"""The wire: a service, its clients, its administrators and its replicas on DDS [QS 2.3 to 2.8, 5, 6, 7.1 and 9].

The library is Eclipse Cyclone DDS. What comes in: octets of peers on topics, and what discovery reports of their
endpoints. What goes out: messages of the core (`core.messages`), and octets to peers. A driver polls, steps its engine,
sends and flushes; nothing here decides what becomes of a sample.

The topics of one service:

- *A topic of samples*: producers write, the service reads [QS 2.6]. Producers are answered on a topic of their own.
- *A queue's topic*, `TOPIC@SUBSCRIBER`: the service announces the queue by a writer and sends each consumer its samples
  in a channel, a writer in a partition named after that consumer: a reader without qsctl gets the same by the filter on
  `related_reader_guid` [QS 2.7 and 2.8]. Consumers acknowledge on a topic of their own.
- *Administration*: one topic of requests, one of replies; a request's target pattern names services [QS 5.2 and 5.3].
- *Monitoring and logging*: written only where the configuration asks for them [QS 6.2 and 3.5].
- *Letters between members of a cluster*: one reader a member, in a partition of its own [QS 7.1]; see `replicas`.

The form of samples: XCDR1, little-endian. Clients of qsctl pack many samples, or acknowledgments, into a frame
(`wire.frames`), never waiting for one to fill; applications without qsctl read and write single samples of the queue's
own type (`plain`). Types of the manual have its names and order (`wire`); members of ours are
behind those, so that a peer which does not know them reads the rest.

What always holds:

- Reliable and keep-all wherever samples, answers or commands travel [QS Tables 3.4 and 3.14]: a peer that reads slowly
  fills its own channel and no other.
- Nothing is written before both sides have discovered each other, so nothing is lost at the start (`clients`).
- Whatever a peer sends is a claim. It is read behind the boundary (`boundary`): refused, counted, reported at a limited
  rate, answered where it has an answer; it costs at most itself. What a peer may take of the service's time and of its
  memory is bounded (`serving.loop_time`, `serving.turns`, `peers.correspondents`).
- A name is resolved, and a property of discovery decoded, here and not in the library, which would end the process on
  some of them (`peers`).
- Loopback only, no multicast, unless the user asks for more (`participant`).

Read `serving/service_transport.py` first, then `serving/delivery.py` and `serving/endpoints.py`; for a client
`clients/client_domain.py` and `clients/client_ports.py`. What does not work with a peer is reported by `diagnosis`.
"""
