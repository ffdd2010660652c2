"""OpenTelemetry's context, carried from a producer to the consumers of its samples (extra `otel`).

The context travels in the payload, as the members `traceparent` and `tracestate` [W3C Trace Context] of a JSON or
MessagePack object: each sample names its trace wherever it waits, `qsctl get messages` shows it, and neither services
nor files nor frames change. A peer that does not know the members ignores them, unless its type forbids members that it
does not have. (The related identity of a sample has 191 usable bits, a trace and a span identifier 192; and it is what
replies are correlated by.)

A `TracedCodec` around the codec of a producer adds the context that is current where the sample is written. A consumer
needs no codec of its own for it:

>>> from opentelemetry import trace
>>> from qsctl.client import JsonCodec
>>> codec = TracedCodec(JsonCodec(dict))
>>> codec.encode({"number": 7})  # no span is current
b'{"number":7}'
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import msgspec

from qsctl.client.codec import Codec, JsonCodec, MsgpackCodec, Value
from qsctl.client.consumer import ReceivedSample
from qsctl.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

__all__ = ["TracedCodec", "context_of", "processing_span", "traced"]

INSTRUMENTATION_NAME: Final = "qsctl"

_Handler = TypeVar("_Handler", bound=Callable[..., Any])

_FIXMAP: Final = range(0x80, 0x90)
_MAP_16: Final = 0xDE
_MAP_32: Final = 0xDF
_JSON_OBJECT: Final = b"{"


class _Carrier(msgspec.Struct, omit_defaults=True):
    """The members of an object that contain a trace context; other members are skipped without decoding."""

    traceparent: str = ""
    tracestate: str = ""


_READ_JSON: Final = msgspec.json.Decoder(_Carrier).decode
_READ_MSGPACK: Final = msgspec.msgpack.Decoder(_Carrier).decode


class TracedCodec(Generic[Value]):
    """A codec that adds the current OpenTelemetry context to the objects encoded by another codec.

    Values that are not objects, such as lists, are encoded by the other codec unchanged.

    Args:
        codec: a `JsonCodec` or `MsgpackCodec`.

    Raises:
        UsageError: the codec is of another class, whose payloads have no members.
        Unavailable: the extra `otel` is not installed.
    """

    def __init__(self, codec: JsonCodec[Value] | MsgpackCodec[Value]) -> None:
        if not isinstance(codec, JsonCodec | MsgpackCodec):
            raise UsageError(
                f"payloads of {type(codec).__name__} have no room for a trace context",
                remedy="Give a JsonCodec or a MsgpackCodec.",
            )
        _required()
        self._codec: Codec[Value] = codec
        self._add = _added_to_json if isinstance(codec, JsonCodec) else _added_to_msgpack

    def encode(self, value: Value) -> bytes:
        """Return the payload of the other codec with the current context; raises as that one does."""
        payload = self._codec.encode(value)
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier)
        return self._add(payload, carrier) if carrier else payload

    def decode(self, payload: bytes) -> Value:
        """Return the value, without the context; raises as the other codec does."""
        return self._codec.decode(payload)


def context_of(sample: ReceivedSample[Any]) -> Context | None:
    """Return the OpenTelemetry context in a sample; None: it has no readable one.

    Raises:
        Unavailable: the extra `otel` is not installed.
    """
    _required()
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = _carrier_of(sample.delivery.payload or b"")
    if carrier is None or not carrier.traceparent:
        return None
    found = TraceContextTextMapPropagator().extract(msgspec.structs.asdict(carrier), Context())
    return found if trace.get_current_span(found).get_span_context().is_valid else None


@contextmanager
def processing_span(sample: ReceivedSample[Any], name: str = "") -> Iterator[Span]:
    """Make a span of kind CONSUMER current for the processing of a sample, in the trace of its producer.

    Args:
        sample: the sample; one without a context begins a trace, or is part of the current one.
        name: the span's; `process <queue>` unless given.

    Raises:
        Unavailable: the extra `otel` is not installed.
    """
    context = context_of(sample)
    from opentelemetry import trace

    delivery = sample.delivery
    attributes = {
        "messaging.system": "qsctl",
        "messaging.operation.type": "process",
        "messaging.destination.name": delivery.queue,
        "messaging.message.id": str(delivery.identity),
    }
    tracer = trace.get_tracer(INSTRUMENTATION_NAME)
    with tracer.start_as_current_span(
        name or f"process {delivery.queue}", context=context, kind=trace.SpanKind.CONSUMER, attributes=attributes
    ) as span:
        yield span


def traced(handler: _Handler) -> _Handler:
    """Return a handler of `process`, a function or a coroutine function, that runs in a `processing_span`.

    Raises:
        Unavailable: the extra `otel` is not installed.
    """
    _required()
    if iscoroutinefunction(handler):

        @wraps(handler)
        async def process_in_task(sample: ReceivedSample[Any]) -> Any:
            with processing_span(sample):
                return await cast("Callable[[Any], Awaitable[Any]]", handler)(sample)

        return cast("_Handler", process_in_task)

    @wraps(handler)
    def process(sample: ReceivedSample[Any]) -> Any:
        with processing_span(sample):
            return handler(sample)

    return cast("_Handler", process)


def _carrier_of(payload: bytes) -> _Carrier | None:
    """Return the context members of a payload; None: it is not an object, or they have other types."""
    read = _READ_JSON if payload[:1] == _JSON_OBJECT else _READ_MSGPACK
    try:
        return read(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _added_to_json(payload: bytes, carrier: dict[str, str]) -> bytes:
    if payload[:1] != _JSON_OBJECT:
        return payload
    members = msgspec.json.encode(carrier)[:-1]
    return members + (b"}" if payload == b"{}" else b"," + payload[1:])


def _added_to_msgpack(payload: bytes, carrier: dict[str, str]) -> bytes:
    """Insert the members before those of a MessagePack map, whose head is the number of members in one of three
    sizes.
    """
    head = payload[0] if payload else 0
    if head in _FIXMAP:
        count, begin = head - _FIXMAP.start, 1
    elif head == _MAP_16:
        count, begin = int.from_bytes(payload[1:3], "big"), 3
    elif head == _MAP_32:
        count, begin = int.from_bytes(payload[1:5], "big"), 5
    else:
        return payload
    count += len(carrier)
    widest = bytes([_MAP_32]) + count.to_bytes(4, "big")
    new_head = bytes([_FIXMAP.start + count]) if count < len(_FIXMAP) else widest
    members = b"".join(msgspec.msgpack.encode(text) for member in carrier.items() for text in member)
    return new_head + members + payload[begin:]


def _required() -> None:
    try:
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        raise Unavailable(
            "OpenTelemetry's API is not installed", remedy="Install it with `pip install 'qsctl[otel]'`."
        ) from None
