"""Codecs of Python types: what is written is read again, and what is not of the type is one clear error."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from qsctl.client import JsonCodec, MsgpackCodec
from qsctl.errors import InvalidInput, UsageError

AT = datetime(2026, 11, 27, 3, 4, 5, 678, tzinfo=UTC)
KEY = uuid.UUID(int=7)


@dataclass
class Order:
    number: int
    tags: list[str] = field(default_factory=list)
    at: datetime = AT
    price: Decimal = Decimal("1.10")
    key: uuid.UUID = KEY


class Quote(msgspec.Struct, tag=True):
    price: float
    of: Order | None = None


class Person(pydantic.BaseModel):
    name: str
    at: datetime = AT
    home: pydantic.AnyUrl = pydantic.AnyUrl("https://example.org/")
    paid: Decimal = Decimal("1.10")
    photo: bytes = b"\x00abc"


@pydantic.dataclasses.dataclass
class Positive:
    number: pydantic.PositiveInt


VALUES: list[Any] = [
    Order(7, ["a", "ü"]),
    Quote(1.5, Order(1)),
    Person(name="Ada"),
    Positive(3),
]


@pytest.mark.parametrize("codec", [JsonCodec, MsgpackCodec])
@pytest.mark.parametrize("value", VALUES, ids=lambda each: type(each).__name__)
def test_what_is_written_is_read_again(codec: Any, value: Any) -> None:
    made = codec(type(value))
    assert made.decode(made.encode(value)) == value


@pytest.mark.parametrize("codec", [JsonCodec, MsgpackCodec])
def test_types_of_the_standard_library_are_values_too(codec: Any) -> None:
    assert codec(list[int]).decode(codec(list[int]).encode([1, 2])) == [1, 2]
    assert codec(dict).decode(codec(dict).encode({"a": None})) == {"a": None}


def test_json_is_what_any_peer_reads() -> None:
    assert JsonCodec(Quote).encode(Quote(1.5)) == b'{"type":"Quote","price":1.5,"of":null}'
    assert JsonCodec(Positive).encode(Positive(3)) == b'{"number":3}'


@pytest.mark.parametrize("codec", [JsonCodec, MsgpackCodec])
@pytest.mark.parametrize(
    ("value_type", "payload", "named"),
    [
        (Order, {"number": "seven"}, "$.number"),
        (Order, {}, "number"),
        (Person, {"name": 7}, "name"),
        (Positive, {"number": -1}, "greater than 0"),
    ],
)
def test_a_payload_of_another_type_is_refused_by_member(codec: Any, value_type: Any, payload: Any, named: str) -> None:
    octets = codec(dict).encode(payload)
    with pytest.raises(InvalidInput, match=f"(?s)not {value_type.__name__} as .*{named.replace('$', '[$]')}"):
        codec(value_type).decode(octets)


@pytest.mark.parametrize("codec", [JsonCodec, MsgpackCodec])
@pytest.mark.parametrize("payload", [b"", b"\xff\xff", b"{", b"[" * 5000, b"\x91" * 5000, bytes(300)])
@pytest.mark.parametrize("value_type", [Order, Person, list[Any]])
def test_octets_of_no_format_are_refused(codec: Any, payload: bytes, value_type: Any) -> None:
    with pytest.raises(InvalidInput, match="octets are not"):
        codec(value_type).decode(payload)


@pytest.mark.parametrize("codec", [JsonCodec, MsgpackCodec])
def test_a_value_of_another_type_is_not_written(codec: Any) -> None:
    with pytest.raises(InvalidInput, match="dict is not Order"):
        codec(Order).encode({"number": 7})
    with pytest.raises(InvalidInput, match="cannot be written"):
        codec(dict).encode({"a": object()})
    with pytest.raises(InvalidInput, match="list is not"):
        codec(dict[str, int]).encode([1])


@pytest.mark.parametrize("codec", [JsonCodec, MsgpackCodec])
def test_a_type_that_nothing_converts_is_refused_at_once(codec: Any) -> None:
    class Opaque(complex):
        pass

    with pytest.raises(UsageError, match="samples cannot be of type"):
        codec(dict[Opaque, list[set[Opaque]]] | list[Order] | set[Order])
