"""The wrappers of `qsctl.client` for asynchronous tasks; each may be used by any number of tasks of one task group.

Constructors and methods have the signatures of the blocking wrappers; methods that wait or send are awaited, and the
wrappers are asynchronous context managers:

>>> import anyio
>>> from qsctl.client import aio
>>> async def write_and_receive() -> None:
...     async with (
...         aio.QueueProducer("Orders", domain_id) as producer,
...         aio.QueueConsumer("Orders", "Billing", domain_id) as consumer,
...     ):
...         await producer.wait_for_queue()
...         await producer.write(b"second")
...         async for sample in consumer:
...             print(sample.value)
...             await consumer.acknowledge(sample)
...             break
>>> anyio.run(write_and_receive)
b'second'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.lazy import exports

__all__ = [
    "QueueConsumer",
    "QueueProducer",
    "QueueReplier",
    "QueueRequester",
]

if TYPE_CHECKING:
    from qsctl.client.aio._consumer import QueueConsumer
    from qsctl.client.aio._producer import QueueProducer
    from qsctl.client.aio._replier import QueueReplier
    from qsctl.client.aio._requester import QueueRequester

__getattr__ = exports(
    __name__,
    {
        "QueueConsumer": "_consumer",
        "QueueProducer": "_producer",
        "QueueReplier": "_replier",
        "QueueRequester": "_requester",
    },
)
