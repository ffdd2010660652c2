"""The conversion of values to payloads of samples, and back."""

from __future__ import annotations

from typing import Protocol, TypeVar

Value = TypeVar("Value")


class Codec(Protocol[Value]):
    """The conversion of a value to a sample's payload. `config` makes one from the XML types."""

    def encode(self, value: Value) -> bytes:
        """Return the payload.

        Raises:
            QsctlError: the value is not of the type.
        """

    def decode(self, payload: bytes) -> Value:
        """Return the value; the inverse.

        Raises:
            QsctlError: the octets are not a value of the type.
        """


class RawOctets:
    """The payload as it is."""

    def encode(self, value: bytes) -> bytes:
        """Return the same octets."""
        return value

    def decode(self, payload: bytes) -> bytes:
        """Return the same octets."""
        return payload
