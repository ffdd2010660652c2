"""What a type checker knows of the wrappers: this file is checked by mypy and pyright, and never run.

`assert_type` is an error where a type differs; a line with `# expected error` must be one.
"""

# pyright: reportUnusedExpression=false
from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

import msgspec
import pydantic

import qsctl
from qsctl.client import (
    JsonCodec,
    MsgpackCodec,
    QueueConsumer,
    QueueProducer,
    QueueReplier,
    QueueRequester,
    ReceivedSample,
    Retry,
    aio,
    stopped_by_signals,
)


@dataclass
class Order:
    number: int


class Quote(msgspec.Struct):
    price: float


class Person(pydantic.BaseModel):
    name: str


def octets() -> None:
    with QueueConsumer("Orders", "S", 60) as consumer, QueueProducer("Orders", 60, window_count=10) as producer:
        producer.write(b"payload")
        assert_type(consumer, QueueConsumer[bytes])
        for sample in consumer:
            assert_type(sample.value, bytes)
            sample.acknowledge()


def values() -> None:
    with (
        QueueConsumer("Orders", "S", 60, codec=JsonCodec(Order), unacked_threshold=10) as orders,
        QueueConsumer("Quotes", "S", codec=MsgpackCodec(Quote)) as quotes,
        QueueConsumer("People", "S", codec=JsonCodec(Person)) as people,
        QueueProducer("Orders", codec=JsonCodec(Order)) as producer,
    ):
        for batch in orders.batches(10):
            assert_type(batch, list[ReceivedSample[Order]])
            assert_type(batch[0].value.number, int)
            orders.acknowledge(batch)
        for quote in quotes:
            assert_type(quote.value, Quote)
            quotes.reject(quote)
        assert_type(people.receive()[0].value, Person)
        producer.write(Order(1))
        producer.write_until_accepted(Order(1), retry=Retry(attempts=2))
        producer.write(b"octets")  # expected error
        QueueProducer("Orders", codec=JsonCodec(Order), windows=3)  # expected error


def typed_by_the_type() -> None:
    with (
        QueueConsumer("Orders", "S", codec=Order) as orders,
        QueueProducer("Quotes", codec=Quote) as quotes,
        qsctl.Service.connect("dds:60") as service,
    ):
        assert_type(orders.receive()[0].value, Order)
        assert_type(quotes.write_many([Quote(1.0)]), list[Quote])
        quotes.write_many([Order(1)])  # expected error
        assert_type(service.producer("Orders"), QueueProducer[bytes])
        assert_type(service.consumer("Orders", Order), QueueConsumer[Order])
        assert_type(service.requester("Quotes", Order, Quote).request(Order(1)), Quote)
        with service.replier("Quotes").processing(lambda request: request.value.upper()):
            pass
        service.replier("Quotes", Order, Quote).process(process)  # expected error


def process(order: ReceivedSample[Order]) -> None:
    assert_type(order.value.number, int)


def processing() -> None:
    with QueueConsumer("Orders", "S", codec=JsonCodec(Order)) as consumer, stopped_by_signals(consumer):
        assert_type(consumer.process(process, retry=Retry()), int)
    with QueueConsumer("Orders", "S") as raw:
        raw.process(process)  # expected error


def requests() -> None:
    with (
        QueueRequester("Quotes", "S", codec=JsonCodec(Order), reply_codec=JsonCodec(Quote)) as requester,
        QueueReplier("Quotes", "S", codec=JsonCodec(Order), reply_codec=JsonCodec(Quote)) as replier,
        QueueRequester("Quotes", "S") as raw,
        QueueRequester("Quotes", "S", reply_codec=JsonCodec(Quote)) as half,
    ):
        assert_type(requester.request(Order(1)), Quote)
        assert_type(raw.request(b"octets"), bytes)
        assert_type(half.request(b"octets"), Quote)
        for request in replier:
            assert_type(request.value, Order)
            replier.reply(request, Quote(1.0))
            replier.reply(request, b"octets")  # expected error


async def handle(order: ReceivedSample[Order]) -> None:
    assert_type(order.value.number, int)


async def tasks() -> None:
    async with (
        aio.QueueConsumer("Orders", "S", codec=JsonCodec(Order)) as consumer,
        aio.QueueConsumer("Orders", "S", 60) as raw,
        aio.QueueProducer("Orders", codec=JsonCodec(Order)) as producer,
        aio.QueueRequester("Quotes", "S", codec=JsonCodec(Order), reply_codec=JsonCodec(Quote)) as requester,
    ):
        await producer.write(Order(1))
        await producer.write_all([Order(2)])
        async for sample in consumer:
            assert_type(sample.value, Order)
            await consumer.acknowledge(sample)
        async for batch in raw.batches(5):
            assert_type(batch, list[ReceivedSample[bytes]])
        assert_type(await requester.request(Order(1)), Quote)
        assert_type(await consumer.process(handle), int)
        await producer.write(b"octets")  # expected error
