"""A handler's attempts at each sample of a consumer or replier, and the resulting acknowledgments.

Decides: the acknowledgment. The sample is accepted when the handler returns, rejected when its attempts are exhausted,
and returned to the queue when it is interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from qsctl.client._retry import Retry
from qsctl.client.session import FOREVER_S
from qsctl.core.messages import AckResponse
from qsctl.identity import SampleIdentity

_LOG: Final = logging.getLogger("qsctl.client")


class Identified(Protocol):
    """A sample with its identity."""

    @property
    def identity(self) -> SampleIdentity:
        """Return the GUID of the sample's writer, and its number among the writer's samples."""


Sample = TypeVar("Sample", bound=Identified)


class Handling(Protocol[Sample]):
    """A blocking wrapper whose samples a handler processes: a consumer, or a replier."""

    @property
    def is_stopping(self) -> bool:
        """Return whether `stop` was called."""

    @property
    def request_queue(self) -> str:
        """Return `<topic>@<subscriber>` of the queue that the samples come from."""

    def receive(self, max_samples: int, timeout_s: float) -> Sequence[Sample]:
        """Wait for samples; return an empty list where none arrived in time, or `stop` was called."""

    def begin(self, sample: Sample) -> None:
        """Register that a handler is processing a sample, for `acknowledge_once`."""

    def acknowledge_once(self, sample: Sample, response: AckResponse) -> None:
        """Acknowledge a sample, unless the handler did."""

    def pauses(self, pause_s: float) -> bool:
        """Wait between two attempts; return whether `stop` was called."""

    def flush(self) -> None:
        """Send pending messages and process received ones; do not wait."""


def process_samples(
    wrapper: Handling[Sample], handle: Callable[[Sample], object], retry: Retry, max_samples: int | None
) -> int:
    """Call a handler with each arriving sample, until `stop`; return the number of samples processed.

    Args:
        wrapper: receives the samples, and acknowledges each by the handler's outcome.
        handle: processes one sample.
        retry: attempts and pauses for one sample.
        max_samples: number of samples after which to end; None: no bound.
    """
    count = finished = 0
    while not wrapper.is_stopping and (max_samples is None or finished < max_samples):
        for sample in wrapper.receive(1, FOREVER_S):
            finished += 1
            response = AckResponse.RETURNED
            wrapper.begin(sample)
            try:
                name = f"{wrapper.request_queue}: {sample.identity}"
                response = attempted(partial(handle, sample), retry, wrapper.pauses, name)
            finally:
                wrapper.acknowledge_once(sample, response)
            count += response is AckResponse.ACCEPTED
            wrapper.flush()
    return count


def attempted(handle: Callable[[], object], retry: Retry, pauses: Callable[[float], bool], name: str) -> AckResponse:
    """Call a handler until it returns or its attempts are exhausted; return the acknowledgment for its sample.

    Args:
        handle: the handler, with its sample.
        retry: attempts, and pauses between them.
        pauses: waits a number of seconds; returns True if the program stops, so that the sample must be returned.
        name: queue and sample, for the log.
    """
    left = retry.pauses()
    while True:
        try:
            handle()
        except Exception:
            pause_s = next(left, None)
            if pause_s is None:
                _LOG.exception("queue %s is rejected", name)
                return AckResponse.REJECTED
            if pauses(pause_s):
                return AckResponse.RETURNED
        else:
            return AckResponse.ACCEPTED


async def attempted_in_task(
    handle: Callable[[], Awaitable[Any]], retry: Retry, pauses: Callable[[float], Awaitable[bool]], name: str
) -> AckResponse:
    """Await a handler as `attempted` calls one; a cancelled task finishes the attempt in progress first."""
    import anyio

    left = retry.pauses()
    while True:
        try:
            with anyio.CancelScope(shield=True):
                await handle()
        except Exception:
            pause_s = next(left, None)
            if pause_s is None:
                _LOG.exception("queue %s is rejected", name)
                return AckResponse.REJECTED
            if await pauses(pause_s):
                return AckResponse.RETURNED
        else:
            return AckResponse.ACCEPTED
