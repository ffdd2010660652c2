"""A handler's attempts at one sample, and the acknowledgment that comes of them.

Decides: a handler that returns accepts its sample, one whose attempts are spent rejects it, and one that is interrupted
returns it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from qsctl.client.retry import Retry
from qsctl.core.messages import AckResponse

_LOG: Final = logging.getLogger("qsctl.client")


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
