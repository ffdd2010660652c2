"""The consumers of a replay: each repeats its recorded answers while its deliveries are as recorded, else is modelled.

A consumer whose delivery has the recorded sample and instant answers at the recorded instant with the recorded answer.
Any other delivery makes it depart from the recording: it serves one sample at a time, for the service time recorded of
this sample, or for a drawn one (`_services.py`). It returns to the recording once it is idle and a delivery is as
recorded. A sample that is redelivered while the consumer holds it is answered once, as by the consumers of
`core.client`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from qsctl.core.messages import Acknowledgment, Delivery
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.replay._services import AttemptKey, Drawn, Served, Services

UNRECORDED_STEP: Final = 2**62
"""Of what was not recorded: behind everything of the same instant that was."""


class ModelledReply(NamedTuple):
    """An answer in transit; void once the consumer has left, unless it `was_recorded`."""

    at_ns: Nanoseconds
    step: int
    message: Acknowledgment
    presence: int
    was_recorded: bool
    is_foretold: bool = False
    """Whether it was scheduled before its delivery; void where the consumer has departed from the recording."""


class _WaitingDelivery(NamedTuple):
    """A delivery that a modelled consumer has not begun to serve."""

    delivery: Delivery
    key: AttemptKey
    size_bytes: int
    planned: Served | None
    finds_idle: bool
    origin: AttemptKey | None


class ConsumerSlot:
    """One consumer, or one copy of it.

    Args:
        queue: its queue's full name.
        guid: its reader's GUID.
        consumer: the number of the recorded consumer whose services it has.
        copy: 0 for the recorded consumer itself, else the number of the copy.
        services: the services of the queue.
        service_factor: multiplies its service times.
        may_copy: whether it may repeat recorded answers at their instants; False under another load.
    """

    def __init__(
        self,
        queue: str,
        guid: Guid,
        consumer: int,
        copy: int,
        services: Services,
        service_factor: float,
        *,
        may_copy: bool = True,
    ) -> None:
        self.queue = queue
        self.guid = guid
        self._consumer = consumer
        self._copy = copy
        self._services = services
        self._factor = service_factor
        self._may_copy = may_copy and copy == 0 and service_factor == 1.0
        self._planned: dict[AttemptKey, deque[Served]] = {}
        for each in sorted(services.served.get(consumer, ()), key=lambda one: one.delivery.step):
            row = each.delivery
            self._planned.setdefault((row.producer, row.sequence_number, row.attempt), deque()).append(each)
        self.is_in_recording = True
        """Whether everything until now was as recorded."""
        self._copied: dict[SampleIdentity, Nanoseconds] = {}
        """Samples whose recorded answer is to come, and when it does."""
        self._waiting: OrderedDict[SampleIdentity, _WaitingDelivery] = OrderedDict()
        self._serving: SampleIdentity | None = None
        self.presence = 0

    def foretold(self, guids: Mapping[int, Guid]) -> Iterator[ModelledReply]:
        """Yield the recorded answers that the service processed in the same turn as the delivery they are matched to.

        They must be scheduled before the delivery, since it would be too late after it.
        """
        for each in chain.from_iterable(self._planned.values()):
            if self._may_copy and each.is_foretold and each.reply_ns is not None and each.response is not None:
                row = each.delivery
                identity = SampleIdentity(guids[row.producer], row.sequence_number)
                message = Acknowledgment(self.queue, self.guid, identity, each.response)
                yield ModelledReply(each.reply_ns, each.reply_step, message, self.presence, True, True)

    def leave(self) -> None:
        """Discard all samples held and in service; answers in transit become void."""
        self.presence += 1
        self._copied.clear()
        self._waiting.clear()
        self._serving = None

    def receive(
        self, now: Nanoseconds, delivery: Delivery, key: AttemptKey, size_bytes: int, origin: AttemptKey | None = None
    ) -> ModelledReply | None:
        """Receive a delivery; return the next answer to schedule, or None where the delivery causes none yet.

        Args:
            now: the instant.
            delivery: the delivery.
            key: the delivery's writer, sequence number and attempt.
            size_bytes: the size of the payload.
            origin: the key of the recorded delivery whose service it repeats, where the load is resampled.
        """
        self._copied = {identity: at_ns for identity, at_ns in self._copied.items() if at_ns > now}
        planned = self._planned.get(key if origin is None else origin)
        # A recorded sample may have been drawn several times: each is served as it was.
        each = None if not planned else planned.popleft() if origin is None else planned[0]
        is_idle = not (self._copied or self._waiting or self._serving)
        is_as_recorded = self._may_copy and each is not None and each.delivery.sent_ns == now
        self.is_in_recording = is_as_recorded and (self.is_in_recording or is_idle)
        if self.is_in_recording and each is not None:
            return self._as_recorded(delivery, each)
        identity = delivery.identity
        if identity == self._serving or identity in self._copied:
            return None  # its twin: the answer that is coming holds for both
        self._waiting.pop(identity, None)  # a twin takes its place, at the end
        self._waiting[identity] = _WaitingDelivery(delivery, key, size_bytes, each, is_idle, origin)
        return self._begin(now) if self._serving is None else None

    def ended(self, now: Nanoseconds) -> ModelledReply | None:
        """Finish the sample in service, whose answer is sent, and begin the next; return the answer to that, if any."""
        self._serving = None
        return self._begin(now)

    def _begin(self, now: Nanoseconds) -> ModelledReply | None:
        while self._waiting:
            identity, each = self._waiting.popitem(last=False)
            drawn = self._drawn(each)
            if drawn.response is None:
                continue
            self._serving = identity
            begins_ns = max(now, *self._copied.values()) if self._copied else now
            end_ns = begins_ns + round(drawn.service_ns * self._factor)
            message = Acknowledgment(self.queue, self.guid, identity, drawn.response)
            return ModelledReply(end_ns, UNRECORDED_STEP, message, self.presence, False)
        return None

    def _drawn(self, each: _WaitingDelivery) -> Drawn:
        if each.planned is not None and not each.planned.is_cut_off:
            return self._services.recorded(each.planned, finds_idle=each.finds_idle)
        return self._services.draw(
            self._consumer, self._copy, each.key, each.size_bytes, finds_idle=each.finds_idle, origin=each.origin
        )

    def _as_recorded(self, delivery: Delivery, each: Served) -> ModelledReply | None:
        if each.reply_ns is None or each.response is None or each.is_foretold:
            return None
        self._copied[delivery.identity] = each.reply_ns
        message = Acknowledgment(self.queue, self.guid, delivery.identity, each.response)
        return ModelledReply(each.reply_ns, each.reply_step, message, self.presence, True)
