"""Client library for programs that write to queues, consume from them, request and reply, over DDS [QS 8].

The public surface is what `__all__` names, here and in `aio`; the other modules serve the command line and may change.

- `QueueProducer`, `QueueConsumer`, `QueueRequester`, `QueueReplier`: blocking wrappers. Each is a context manager, and
  belongs to one thread. They have the same methods: `wait_for_queue`, `receive`, `acknowledge`, `reject`, `stop`.
- Payloads are octets, or values with a `Codec`: `JsonCodec` or `MsgpackCodec` of a dataclass, a msgspec Struct or a
  pydantic model, or one that `qsctl.config.sample_types.types` makes from XML types. Type checkers know the values by
  the codec.
- `Retry`: attempts and pauses, of `QueueConsumer.process` and `QueueProducer.write_until_accepted`.
- `stopped_by_signals`: ends iterations and `process` in an orderly way at SIGTERM.
- `tracing`: OpenTelemetry's context carried from producers to consumers (extra `otel`).
- `aio`: the same four for tasks (asyncio or trio), with the same signatures.
- `ClientSession`: one participant for several wrappers.

Samples arrive in DDS frames (`transport.dds.client_ports`), are held by the state machines of `core.client`, and are
sent in calls that wait and in `flush`. The wrappers have no thread, so nothing happens between the calls.
A received sample is held until it is acknowledged, once; leaving with unacknowledged samples returns them to the queue.
Errors are those of `qsctl.errors`. Read `session.py` first, then `producer.py`.

A service must run in the domain, see `qsctl serve`. `wait_for_queue` waits until a queue is discovered:

>>> from qsctl.client import QueueConsumer, QueueProducer
>>> with QueueProducer("Orders", domain_id) as producer:
...     queues = producer.wait_for_queue()
...     identity = producer.write(b"first")
...     rejected_count = producer.wait_for_acknowledgments()
>>> queues, rejected_count
(('Orders@Billing',), 0)
>>> with QueueConsumer("Orders", "Billing", domain_id) as consumer:
...     for sample in consumer.receive(max_samples=10):
...         print(sample.value, sample.identity == identity)
...         sample.acknowledge()
b'first' True

Administration, wherever the service lives: `Administration` in `administration.py`, over a `Connection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.lazy import exports

__all__ = [
    "ApplicationAcknowledgment",
    "ClientSession",
    "Codec",
    "JsonCodec",
    "MsgpackCodec",
    "QueueConsumer",
    "QueueProducer",
    "QueueReplier",
    "QueueRequester",
    "RawOctets",
    "ReceivedSample",
    "Retry",
    "stopped_by_signals",
]

if TYPE_CHECKING:
    from qsctl.client._retry import Retry
    from qsctl.client._signals import stopped_by_signals
    from qsctl.client.codec import Codec, JsonCodec, MsgpackCodec, RawOctets
    from qsctl.client.consumer import QueueConsumer, ReceivedSample
    from qsctl.client.producer import ApplicationAcknowledgment, QueueProducer
    from qsctl.client.replier import QueueReplier
    from qsctl.client.requester import QueueRequester
    from qsctl.client.session import ClientSession

__getattr__ = exports(
    __name__,
    {
        "ApplicationAcknowledgment": "producer",
        "ClientSession": "session",
        "Codec": "codec",
        "JsonCodec": "codec",
        "MsgpackCodec": "codec",
        "QueueConsumer": "consumer",
        "QueueProducer": "producer",
        "QueueReplier": "replier",
        "QueueRequester": "requester",
        "RawOctets": "codec",
        "ReceivedSample": "consumer",
        "Retry": "_retry",
        "stopped_by_signals": "_signals",
    },
)
