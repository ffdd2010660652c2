"""A handler's attempts at each sample of a consumer or replier, and the acknowledgments that come of them.

Decides: a handler that returns accepts its sample, one whose attempts are spent rejects it, and one that is interrupted
returns it.
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
        """Return the GUID of its writer, and its number among the writer's samples."""


Sample = TypeVar("Sample", bound=Identified)


class Handling(Protocol[Sample]):
    """A blocking wrapper whose samples a handler processes: a consumer, or a replier."""

    @property
    def is_stopping(self) -> bool:
        """Return whether `stop` was called."""

    @property
    def request_queue(self) -> str:
        """Return `<topic>@<subscriber>` of the queue that its samples come from."""

    def receive(self, max_samples: int, timeout_s: float) -> Sequence[Sample]:
        """Wait for samples; an empty list: none came in time, or `stop` was called."""

    def begin(self, sample: Sample) -> None:
        """Note that a handler works on a sample, for `acknowledge_once`."""

    def acknowledge_once(self, sample: Sample, response: AckResponse) -> None:
        """Acknowledge a sample, unless the program did while it worked on it."""

    def pauses(self, pause_s: float) -> bool:
        """Wait between two attempts; return whether `stop` was called."""

    def flush(self) -> None:
        """Send what is to be sent, and process what has come; do not wait."""


def process_samples(
    wrapper: Handling[Sample], handle: Callable[[Sample], object], retry: Retry, max_samples: int | None
) -> int:
    """Call a handler with each sample as it comes, until `stop`; return the number of samples that it processed.

    Args:
        wrapper: gives the samples, and acknowledges each by what came of it.
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
    """Call a handler until it returns or its attempts are spent; return the acknowledgment of its sample.

    Args:
        handle: the handler, with its sample.
        retry: attempts, and pauses between them.
        pauses: waits a number of seconds; true: the program stops, and the sample is to be returned.
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
