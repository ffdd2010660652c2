"""The DDS transport of a service, its clients, its administrators and its replicas [QS 2.3 to 2.8, 5, 6, 7.1 and 9].

The library is Eclipse Cyclone DDS. Input: octets of peers on topics, and their endpoints as discovery reports them.
Output: messages of the core (`core.messages`), and octets to peers. A driver polls, steps its engine, sends and
flushes; this package makes no decision about a sample.

The topics of one service:

- *A topic of samples*: producers write, the service reads [QS 2.6]. Producers are answered on a topic of their own.
- *A queue's topic*, `TOPIC@SUBSCRIBER`: the service announces the queue by a writer and sends each consumer its samples
  in a channel, a writer in a partition named after that consumer: a reader without qsctl gets the same samples by the
  filter on `related_reader_guid` [QS 2.7 and 2.8]. Consumers acknowledge on a topic of their own.
- *Administration*: one topic of requests, one of replies; a request's target pattern matches services by name [QS 5.2
  and 5.3].
- *Monitoring and logging*: written only if the configuration enables them [QS 6.2 and 3.5].
- *Letters between members of a cluster*: one reader per member, in a partition of its own [QS 7.1]; see `replicas`.

The representation of samples is XCDR1, little-endian. Clients of qsctl pack several samples, or acknowledgments, into a
frame (`wire.frames`), without waiting for one to fill; applications without qsctl read and write single samples of the
queue's own type (`plain`). Types of [QS] have its names and order (`wire`); members of ours follow them, so that
a peer without them reads the rest.

Invariants:

- Samples, answers and commands are reliable and keep-all [QS Tables 3.4 and 3.14]: a slow peer fills its own channel
  and no other.
- Nothing is written before both sides have discovered each other, so nothing is lost at the start (`clients`).
- No message of a peer is trusted. It is parsed behind the boundary (`boundary`): an invalid one is refused, counted,
  reported at a limited rate, and answered if it has an answer; it affects no other message. The service's time and
  memory that a peer can use are bounded (`serving.loop_time`, `serving.turns`, `peers.correspondents`).
- Names are resolved, and properties of discovery decoded, here and not in the library, which would end the process on
  some of them (`peers`).
- Only loopback without multicast is used, unless the user configures more (`participant`).

Read `serving/service_transport.py` first, then `serving/_delivery.py` and `serving/endpoints.py`; for a client
`clients/client_domain.py` and `clients/client_ports.py`. `diagnosis` reports incompatible and faulty peers.
"""
