"""OpenTelemetry's context in payloads: added to objects alone, and nothing to a peer that does not know it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.client import JsonCodec, MsgpackCodec
from qsctl.client.codec import RawOctets
from qsctl.client.consumer import ReceivedSample
from qsctl.core.client.consumer import Arrivals, QueueReader
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.transport.dds.wire import frames

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from qsctl.client import tracing
from qsctl.client.tracing import TracedCodec, context_of, processing_span, traced


@dataclass
class Order:
    number: int


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda *arguments, **_: provider.get_tracer("tests"))
    return exporter


def sample_of(payload: bytes) -> ReceivedSample[Any]:
    packed = frames.pack_sample(SampleIdentity(NIL_GUID, 1), payload)
    (arrived,) = frames.parse_arrivals(frames.frame_of([packed]))
    assert isinstance(arrived, Arrivals)
    (octets,) = arrived.samples.values()
    consumer: Any = SimpleNamespace(state=QueueReader("Orders@S", NIL_GUID))
    return ReceivedSample(consumer, octets, payload)


@pytest.mark.parametrize("kind", [JsonCodec, MsgpackCodec])
def test_producer_and_consumer_are_spans_of_one_trace(kind: Any, spans: InMemorySpanExporter) -> None:
    codec = TracedCodec(kind(Order))
    with trace.get_tracer("application").start_as_current_span("send"):
        payload = codec.encode(Order(7))
    assert codec.decode(payload) == kind(Order).decode(payload) == Order(7), "peers without tracing notice nothing"

    @traced
    def handle(sample: ReceivedSample[Any]) -> int:
        return 7

    assert handle(sample_of(payload)) == 7
    sent, processed = spans.get_finished_spans()
    assert processed.context.trace_id == sent.context.trace_id
    assert processed.parent is not None
    assert processed.parent.span_id == sent.context.span_id
    assert (processed.name, processed.kind) == ("process Orders@S", trace.SpanKind.CONSUMER)
    assert processed.attributes is not None
    assert processed.attributes["messaging.destination.name"] == "Orders@S"


def test_a_failing_handler_of_a_task_is_recorded_in_its_span(spans: InMemorySpanExporter) -> None:
    import anyio

    @traced
    async def handle(sample: ReceivedSample[Any]) -> None:
        raise RuntimeError("not today")

    with pytest.raises(RuntimeError):
        anyio.run(handle, sample_of(b"no object"))
    (span,) = spans.get_finished_spans()
    assert span.parent is None, "a sample without a context begins a trace"
    assert not span.status.is_ok


@pytest.mark.parametrize("kind", [JsonCodec, MsgpackCodec])
def test_what_is_no_object_and_what_has_no_span_is_written_as_it_is(kind: Any, spans: InMemorySpanExporter) -> None:
    assert TracedCodec(kind(Order)).encode(Order(7)) == kind(Order).encode(Order(7))
    with trace.get_tracer("application").start_as_current_span("send"):
        assert TracedCodec(kind(list)).encode([1]) == kind(list).encode([1])


@given(
    st.dictionaries(st.text(), st.integers(-(2**60), 2**60), max_size=40),
    st.sampled_from([JsonCodec, MsgpackCodec]),
)
def test_members_are_added_to_every_object(members: dict[str, int], kind: Any) -> None:
    carrier = {"traceparent": f"00-{1:032x}-{2:016x}-01", "tracestate": "a=b"}
    add = tracing._added_to_json if kind is JsonCodec else tracing._added_to_msgpack
    payload = kind(dict).encode(members)
    assert kind(dict).decode(add(payload, carrier)) == {**carrier, **members}
    if not {"traceparent", "tracestate"} & members.keys():
        assert context_of(sample_of(add(payload, carrier))) is not None
        assert context_of(sample_of(payload)) is None


def test_an_object_of_seventy_thousand_members_carries_it_too() -> None:
    payload = msgspec.msgpack.encode({str(number): number for number in range(70_000)})
    added = tracing._added_to_msgpack(payload, {"traceparent": "x"})
    assert msgspec.msgpack.decode(added)["traceparent"] == "x"


@given(st.binary() | st.text().map(lambda text: b'{"traceparent":' + msgspec.json.encode(text) + b"}"))
def test_a_hostile_payload_is_one_without_a_context(payload: bytes) -> None:
    assert context_of(sample_of(payload)) is None
    with processing_span(sample_of(payload)):
        pass


def test_other_codecs_are_refused() -> None:
    with pytest.raises(UsageError, match="RawOctets have no room"):
        TracedCodec(RawOctets())  # type: ignore[arg-type]
