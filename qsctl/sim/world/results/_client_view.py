"""A second judge, which uses only what programs saw, and neither services, epochs nor disks.

Its history consists of the writes with their instants, the answers to each writer, the receipts of each consumer, with
or without the redelivered flag, and the consumers' answers. A queue that keeps its guarantees has, for each sample, an
order of these events that a single queue without faults could have given:

- enqueued once, between its first writing and the first positive answer or delivery;
- received without the redelivered flag by one consumer at a time: again only after that one has rejected it;
- removed after a consumer accepted it: at the end of the run, a sample whose writer was answered 1, and that neither
  expires nor can be a dead letter, was received and accepted by a consumer;
- never received after every attempt to write it was answered 0 by all services.

A queue that the administrator deletes and creates again is another one, with an order of its own.

Apart from their order, which a queue with retries and several producers does not guarantee, the samples of a queue are
independent in this. So each sample is checked by itself: the check is exact and takes time linear in the length of the
history, not in its permutations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qsctl.core.messages import AckResponse, Delivery, SampleFlag, Write, WriteAcknowledgment
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.world._world import World
from qsctl.sim.world.invariants.base import Invariant


@dataclass(slots=True)
class _History:
    """The events of one sample in one queue, as programs saw them."""

    accepted_ns: Nanoseconds = -1
    received: list[tuple[Nanoseconds, Guid, bool, int]] = field(default_factory=list)
    """The instant, the consumer, the redelivered flag, and the attempt number of each receipt."""
    answers: list[tuple[Nanoseconds, Guid, AckResponse]] = field(default_factory=list)


class ClientView(Invariant):
    """P1 to P4 as clients see them, judged by the clients' history alone."""

    name = "clients"
    rule = "what programs saw is what one queue without faults could have shown them"

    def __init__(
        self,
        clock: Callable[[], Nanoseconds],
        settings: Mapping[str, SharedReaderQueueSettings],
        world: World,
    ) -> None:
        super().__init__(clock)
        self._settings = settings
        self._world = world
        self._administrator = world.administrator
        self._lost_ns: dict[str, Nanoseconds] = {}
        """The latest instant, by queue, at which a majority of disks was lost, and perhaps samples with them."""
        self._written: dict[SampleIdentity, tuple[Nanoseconds, bool]] = {}
        """The instant at which a sample was first written, and whether it may expire."""
        self._histories: dict[tuple[str, SampleIdentity], _History] = {}

    def written(self, service: int, write: Write) -> None:
        """Note the first writing of a sample."""
        self._written.setdefault(write.identity, (self._clock(), write.lifespan_ns < INFINITE_NS))

    def answered(self, service: int, answer: WriteAcknowledgment) -> None:
        """Note a positive acknowledgment that a producer received."""
        history = self._histories.setdefault((answer.queue, answer.identity), _History())
        if answer.response == AckResponse.ACCEPTED and history.accepted_ns < 0:
            history.accepted_ns = self._clock()

    def delivered(self, service: int, delivery: Delivery) -> None:
        """Note a receipt; violate the rule if no producer wrote the sample."""
        history = self._histories.setdefault((delivery.queue, delivery.identity), _History())
        flagged = bool(delivery.flags & SampleFlag.REDELIVERED)
        history.received.append((self._clock(), delivery.consumer_guid, flagged, delivery.attempt))
        if delivery.dead_letter_reason is None and delivery.identity not in self._written:
            self.violate(f"{delivery.queue}: {delivery.identity} was received and never written")

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note a consumer's answer."""
        history = self._histories.setdefault((queue, identity), _History())
        history.answers.append((self._clock(), consumer_guid, response))

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Expect nothing of the queue's earlier samples from now on."""
        self._lost_ns[queue] = self._clock()

    def concluded(self) -> None:
        """Test each sample's history for an order that one queue without faults could have given."""
        was_flushed = self._world.was_flushed
        for (queue, identity), history in self._histories.items():
            self.checked_count += 1
            self._check_receipts(queue, identity, history)
            settings = self._settings.get(queue)
            if history.accepted_ns < 0 or settings is None or was_flushed:
                continue
            if history.accepted_ns <= self._lost_ns.get(queue, -1):
                continue
            if self._administrator.may_be_deleted(queue, history.accepted_ns):
                continue
            may_expire = settings.lifespan_ns < INFINITE_NS or self._written.get(identity, (0, False))[1]
            rejected = sum(response == AckResponse.REJECTED for _, _, response in history.answers)
            attempts_max = settings.redelivery.max_delivery_retries + 1
            may_die = rejected > 0 or len(history.received) >= attempts_max
            was_consumed = any(response == AckResponse.ACCEPTED for _, _, response in history.answers)
            if not (was_consumed or may_expire or may_die) and queue in self._world.consumed_queues:
                self.violate(
                    f"{queue}: the writer of {identity} was answered 1 at {history.accepted_ns / 1e9:.3f} s, and no "
                    f"consumer ever accepted it ({len(history.received)} receipts)"
                )

    def _check_receipts(self, queue: str, identity: SampleIdentity, history: _History) -> None:
        """Test that each receipt without the flag follows the rejections of all earlier ones.

        A flagged receipt may precede an unflagged one that was sent earlier: they use different connections.
        """
        unflagged: list[Guid] = []
        answers = list(history.answers)
        part = (0, 0)
        for at_ns, guid, flagged, _ in history.received:
            if at_ns <= self._lost_ns.get(queue, -1):
                continue
            if part != (part := self._administrator.part_at(queue, at_ns)):
                unflagged.clear()
            if part[0] != part[1]:
                continue  # the queue is being replaced: a client does not know which one delivered
            while answers and answers[0][0] <= at_ns:
                _, who, response = answers.pop(0)
                if response == AckResponse.REJECTED and who in unflagged:
                    unflagged.remove(who)
            if flagged:
                continue
            if unflagged:
                self.violate(
                    f"{queue}: {identity} was received at {at_ns / 1e9:.3f} s without the flag by {guid.hex()[-4:]}, "
                    f"while {unflagged[0].hex()[-4:]} had it so"
                )
            unflagged.append(guid)
