"""The conversion of values to payloads of samples, and back.

`JsonCodec` and `MsgpackCodec` convert dataclasses, msgspec Structs and pydantic models: a payload is one JSON or
MessagePack value, without an envelope. `qsctl.config.sample_types.types` makes codecs of XML types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import msgspec

from qsctl.errors import InvalidInput, UsageError

Value = TypeVar("Value")

SHOWN_OCTETS: Final = 80
"""Octets of a payload that the message about it shows."""


class Codec(Protocol[Value]):
    """The conversion of a value to a sample's payload. `config` makes one from the XML types."""

    def encode(self, value: Value) -> bytes:
        """Return the payload.

        Raises:
            QsctlError: the value is not of the type.
        """
        ...

    def decode(self, payload: bytes) -> Value:
        """Return the value of a payload, the inverse of `encode`.

        Raises:
            QsctlError: the octets are not a value of the type.
        """
        ...


class RawOctets:
    """The codec that leaves payloads unchanged."""

    def encode(self, value: bytes) -> bytes:
        """Return the octets unchanged."""
        return value

    def decode(self, payload: bytes) -> bytes:
        """Return the octets unchanged."""
        return payload


class JsonCodec(Generic[Value]):
    """Values of one Python type as JSON: UTF-8, one value a payload.

    Args:
        value_type: a dataclass, a msgspec Struct, a pydantic model, or a type of the standard library that msgspec
            knows, such as `dict` or `list[int]`.

    Raises:
        UsageError: neither msgspec nor pydantic converts the type.
    """

    format_name: Final = "JSON"

    def __init__(self, value_type: type[Value]) -> None:
        self.value_type = value_type
        model = _pydantic_adapter(value_type)
        if model is not None:
            self._encode: Callable[[Any], bytes] = model.dump_json
            self._decode: Callable[[bytes], Any] = model.validate_json
        else:
            self._encode = msgspec.json.Encoder().encode
            self._decode = _made(lambda: msgspec.json.Decoder(value_type), value_type).decode

    def encode(self, value: Value) -> bytes:
        """Return the value as JSON.

        Raises:
            InvalidInput: the value is not of the type, or has a member that JSON cannot represent.
        """
        return _encoded(self._encode, value, self.value_type, self.format_name)

    def decode(self, payload: bytes) -> Value:
        """Return the value in a payload; members that the type does not have are ignored, unless it forbids them.

        Raises:
            InvalidInput: the octets are not JSON, or not a value of the type; the message names the member.
        """
        return cast("Value", _decoded(self._decode, payload, self.value_type, self.format_name))


class MsgpackCodec(Generic[Value]):
    """Values of one Python type as MessagePack: about half the size and time of JSON.

    Args:
        value_type: as of `JsonCodec`.

    Raises:
        UsageError: neither msgspec nor pydantic converts the type.
    """

    format_name: Final = "MessagePack"

    def __init__(self, value_type: type[Value]) -> None:
        self.value_type = value_type
        model = _pydantic_adapter(value_type)
        encoder = msgspec.msgpack.Encoder(enc_hook=_pydantic_plain if model is not None else None)
        if model is not None:
            plain = msgspec.msgpack.Decoder()
            self._encode: Callable[[Any], bytes] = lambda value: encoder.encode(model.dump_python(value))
            self._decode: Callable[[bytes], Any] = lambda payload: model.validate_python(plain.decode(payload))
        else:
            self._encode = encoder.encode
            self._decode = _made(lambda: msgspec.msgpack.Decoder(value_type), value_type).decode

    def encode(self, value: Value) -> bytes:
        """Return the value as MessagePack.

        Raises:
            InvalidInput: the value is not of the type, or has a member that MessagePack cannot represent.
        """
        return _encoded(self._encode, value, self.value_type, self.format_name)

    def decode(self, payload: bytes) -> Value:
        """Return the value in a payload; members that the type does not have are ignored, unless it forbids them.

        Raises:
            InvalidInput: the octets are not MessagePack, or not a value of the type; the message names the member.
        """
        return cast("Value", _decoded(self._decode, payload, self.value_type, self.format_name))


def codec_of(given: Codec[Value] | type[Value] | None) -> Codec[Value]:
    """Return the codec for a wrapper's argument: a codec itself, JSON for a type, plain octets for None.

    Raises:
        UsageError: neither msgspec nor pydantic converts the type.
    """
    if given is None or given is bytes:
        return cast("Codec[Value]", RawOctets())
    if isinstance(given, type) or hasattr(given, "__origin__"):  # `list[int]` is no instance of `type`
        return JsonCodec(cast("type[Value]", given))
    return given


def _pydantic_adapter(value_type: type[Any]) -> Any:
    """Return pydantic's adapter of one of its models or dataclasses; None for another type."""
    if not hasattr(value_type, "__pydantic_validator__"):
        return None
    from pydantic import TypeAdapter  # a tenth of a second: only where a model is used

    return TypeAdapter(value_type)


def _pydantic_plain(value: object) -> Any:
    """Return the JSON form of a member that MessagePack cannot represent, such as a URL."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def _made(make: Callable[[], Any], value_type: type[Any]) -> Any:
    try:
        return make()
    except TypeError as error:
        raise UsageError(
            f"samples cannot be of type {_name_of(value_type)}: {error}",
            remedy="Give a dataclass, a msgspec Struct or a pydantic model, or a codec of your own.",
        ) from None


def _encoded(encode: Callable[[Any], bytes], value: object, value_type: type[Any], format_name: str) -> bytes:
    kind = getattr(value_type, "__origin__", value_type)
    if isinstance(kind, type) and kind is not object and not isinstance(value, kind):
        raise InvalidInput(
            f"{type(value).__name__} is not {_name_of(value_type)}, the type of the codec",
            remedy="Write values of this type, or open the producer with another codec.",
        )
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a value of {_name_of(value_type)} cannot be written as {format_name}: {error}") from error


def _decoded(decode: Callable[[bytes], Any], payload: bytes, value_type: type[Any], format_name: str) -> Any:
    try:
        return decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # pydantic raises a ValueError
        shown = payload[:SHOWN_OCTETS]
        more = "…" if len(payload) > SHOWN_OCTETS else ""
        raise InvalidInput(
            f"{len(payload)} octets are not {_name_of(value_type)} as {format_name}: {error} in {shown!r}{more}",
            remedy="Check which type and codec the producer writes with.",
        ) from error


def _name_of(value_type: type[Any]) -> str:
    return getattr(value_type, "__qualname__", None) or repr(value_type)
