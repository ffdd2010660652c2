"""The translation thread of a process: routing, translation, and the two-phase move of results [CLOVERLEAF].

Decides: the order of records. Results are durable in the partial queue before their source leaves the recovery
database; that record is the commit. Then they move on one by one, each by one record. After an interruption either the
source exists, and its partial results are discarded, or all of its results exist, and they move on.
"""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.core.integration._hop import Hop
from qsctl.core.integration._ledger import derived
from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._neighbours import Receiver
from qsctl.core.integration._site import Site
from qsctl.core.integration._translation import (
    AllDetailsFailed,
    DetailFailed,
    Panic,
    TranslationResult,
    route_of,
    run_detail,
)
from qsctl.core.integration._worker import Job, Worker
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.events import Changed, Fate, Translated
from qsctl.core.integration.message import Flag, State
from qsctl.core.integration.procedures import ProcedureFailed
from qsctl.core.integration.routes import RouteDetail


class TranslationThread:
    """One translation thread, with one post-translation queue per destination in its process."""

    def __init__(self, site: Site, process: str) -> None:
        self.site = site
        self.process = process
        self.name = f"{process}_xlate"
        self.is_running = False
        self.pre_translation = MessageQueue(State.PRE_TRANSLATION, process, self.name)
        self.route_detail = MessageQueue(State.ROUTE_DETAIL, process, self.name)
        self.partial = MessageQueue(State.PARTIAL, process, self.name)
        self.post_translation: dict[str, MessageQueue] = {}
        self._hop = Hop(site)
        self._worker = Worker(site.after, self._wake)

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """Return its queues, those of destinations last."""
        return (self.pre_translation, self.route_detail, self.partial, *self.post_translation.values())

    def post_queue(self, destination: str) -> MessageQueue:
        """Return the post-translation queue of a destination."""
        queue = self.post_translation.get(destination)
        if queue is None:
            queue = self.post_translation[destination] = MessageQueue(State.POST_TRANSLATION, self.process, destination)
        return queue

    # Input.

    def arrive(self, held: HeldMessage) -> None:
        """Receive a message from a protocol thread by ICL; one with SKIPXLT is not translated."""
        if held.message.flags & Flag.SKIPXLT:
            self.site.enter(held, self.post_queue(held.message.destination), MessageCause.SKIP)
        else:
            self.site.enter(held, self.pre_translation, MessageCause.ARRIVE)
        self._wake()

    def take_back(self, receiver: Receiver) -> None:
        """Take back the messages in transit to a thread that stops."""
        self._hop.take_back(receiver)

    def start(self) -> None:
        """Start the thread, with its process."""
        self.is_running = True
        self.site.events.append(Changed(self.site.now, "thread", self.name, is_up=True))
        self._wake()

    def crash(self) -> None:
        """Drop everything in memory, because the process ended."""
        self.is_running = False
        self._worker.abort()
        self._hop.crash()
        for queue in self.queues:
            queue.clear()

    # Work.

    def work(self) -> None:
        """Begin the work that is possible now."""
        if not self.is_running:
            return
        for queue in list(self.post_translation.values()):
            self._hop.send(queue, self.site.threads[queue.owner])
        if not self._worker.is_busy and self.pre_translation.first() is not None:
            held = self.site.take(self.pre_translation)
            assert held is not None
            held.move(MessageCause.BEGIN, entered_at_ns=self.site.now)
            self.site.ledger.save(held)
            self._worker.begin(self._translate(held))

    def _translate(self, held: HeldMessage) -> Job:
        """Run all route details of a message, then commit."""
        failures: list[DetailFailed] = []
        try:
            for detail in self._details_of(held):
                try:
                    yield from run_detail(detail, held.message, lambda result, d=detail: self._collect(held, d, result))  # type: ignore[misc]
                except AllDetailsFailed:
                    raise
                except DetailFailed as failure:
                    self._throw_away(self.route_detail)
                    failures.append(failure)
                else:
                    self._to_partial()
        except AllDetailsFailed as failure:
            self._throw_away(self.route_detail)
            self._throw_away(self.partial)
            self.site.fail(held, failure.code, str(failure))
        except Panic as panic:
            self.site.panics.append((self.process, str(panic)))
        else:
            self._commit(held, failures)

    def _details_of(self, held: HeldMessage) -> Sequence[RouteDetail]:
        message = held.message
        thread = self.site.threads.get(message.source)
        inbound = thread.settings.inbound if thread is not None else None
        if inbound is None:
            raise AllDetailsFailed(ErrorCode.NO_DESTINATION, f"thread {message.source!r} has no routes")
        transaction_id = message.transaction_id
        if not transaction_id:
            try:
                transaction_id = inbound.transaction_id_of(message)
            except ProcedureFailed as error:
                raise AllDetailsFailed(ErrorCode.TRANSACTION_ID_FAILED, str(error)) from error
            held.change(transaction_id=transaction_id)
        if not transaction_id:
            raise AllDetailsFailed(ErrorCode.NO_TRANSACTION_ID, "the message has no transaction id")
        route = route_of(inbound.routes, transaction_id)
        if route is None:
            known = ", ".join(each.transaction_id for each in inbound.routes) or "none"
            text = f"no route for transaction id {transaction_id!r}; there are: {known}"
            raise AllDetailsFailed(ErrorCode.UNSUPPORTED_TRANSACTION_ID, text)
        return route.details

    def _collect(self, source: HeldMessage, detail: RouteDetail, result: TranslationResult) -> None:
        """Put a result into the route-detail queue, once for each destination."""
        if result.is_rerouted:
            destinations: Sequence[str] = ("",)
            if not result.message.transaction_id or result.message.turns >= self.site.settings.turns_max:
                turns = result.message.turns
                text = f"rerouted {turns} times" if result.message.transaction_id else "REROUTE to nothing"
                raise AllDetailsFailed(ErrorCode.ROUTE_LOOP, text)
        elif result.is_sent:
            destinations = (result.message.destination,) if result.message.destination else ()
        else:
            destinations = detail.destinations
        if not destinations:
            raise AllDetailsFailed(ErrorCode.NO_DESTINATION, "a result has no destination")
        for destination in destinations:
            thread = self.site.threads.get(destination)
            if not result.is_rerouted and (thread is None or thread.settings.outbound is None):
                raise AllDetailsFailed(ErrorCode.WRONG_DESTINATION, f"{destination!r} sends nothing")
            message = derived(result.message, self.site.ledger.new_id(), results_from=source.message.serial)
            flags = source.message.flags | (Flag.USERDB if result.is_recoverable else Flag.NONE)
            if result.is_rerouted:
                flags |= Flag.REROUTED
            made = HeldMessage(message)
            self.site.prepare(made, self.route_detail, MessageCause.PASS, destination=destination, flags=flags)
            self.site.put(made, self.route_detail)

    def _to_partial(self) -> None:
        """Move the results of a completed route detail to the partial queue, in order, and store them."""
        for held in list(self.route_detail):
            self.route_detail.remove(held.message.mid)
            self.site.leave(held, self.route_detail, Fate.PASSED)
            self.site.prepare(held, self.partial, MessageCause.COLLECT)
            if held.message.results_from:
                self.site.ledger.save(held)
            self.site.put(held, self.partial)

    def _throw_away(self, queue: MessageQueue) -> None:
        for held in list(queue):
            queue.remove(held.message.mid)
            self.site.leave(held, queue, Fate.ABANDONED)
            self.site.end(held, Fate.ABANDONED)

    def _commit(self, held: HeldMessage, failures: Sequence[DetailFailed]) -> None:
        """Remove the source from the recovery database, then distribute its results."""
        results = list(self.partial)
        became = tuple(each.message.mid for each in results)
        self.site.events.append(Translated(self.site.now, held.message.mid, became, bool(failures)))
        if failures:
            self.site.fail(held, failures[0].code, "; ".join(map(str, failures)))
        else:
            self.site.end(held, Fate.PASSED, became)
        self.distribute(results)

    def distribute(self, results: Sequence[HeldMessage]) -> None:
        """Move results from the partial queue to the queues of their destinations, or for rerouting to pre-translation.

        Rerouted results are put at the head of the pre-translation queue, in order.
        """
        rerouted = [each for each in results if each.message.flags & Flag.REROUTED]
        for held in [each for each in results if each not in rerouted]:
            self._leave_partial(held)
            self.site.enter(held, self.post_queue(held.message.destination), MessageCause.DISTRIBUTE)
        for held in reversed(rerouted):
            self._leave_partial(held)
            flags, turns = held.message.flags & ~Flag.REROUTED, held.message.turns + 1
            self.site.enter(held, self.pre_translation, MessageCause.REROUTE, at_front=True, flags=flags, turns=turns)
        self._wake()

    def _leave_partial(self, held: HeldMessage) -> None:
        self.partial.remove(held.message.mid)
        self.site.leave(held, self.partial, Fate.PASSED)

    def _wake(self) -> None:
        self.site.wake(self.work)
