"""A protocol thread: one connection, its procedures, and the four queues around them [CLOVERLEAF].

Decides: the order of a thread's work, and the outcome for its messages when it or its connection stops.
"""

from __future__ import annotations

from typing import Any

from qsctl.core.integration import _tps as tps
from qsctl.core.integration._hop import Hop
from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._site import Site
from qsctl.core.integration._worker import Job, Worker
from qsctl.core.integration.dispositions import ERROR_CODES, Disposition, ProcedureContext
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.events import Changed, Fate, Received
from qsctl.core.integration.message import Flag, Message, MessageId, MessageType, State
from qsctl.core.integration.messages import Accepted, Arrived, ConnectionDelivery, SenderRefused
from qsctl.core.integration.procedures import Procedure, ProcedureFailed, ProcedureMode, StackVerdict, run_stack
from qsctl.core.integration.settings import ThreadSettings
from qsctl.instant import INFINITE_NS


class ProtocolThread:
    """One thread. It runs only while its operator and its process let it, see `is_running`."""

    def __init__(self, site: Site, settings: ThreadSettings, process: str) -> None:
        self.site = site
        self.settings = settings
        self.process = process
        self.is_running = False
        self.is_connected = True
        self.inbound_pre = MessageQueue(State.INBOUND_PRE_TPS, process, settings.name)
        self.inbound_post = MessageQueue(State.INBOUND_POST_TPS, process, settings.name)
        self.outbound_pre = MessageQueue(State.OUTBOUND_PRE_TPS, process, settings.name)
        self.outbound_post = MessageQueue(State.OUTBOUND_POST_TPS, process, settings.name)
        self._hop = Hop(site)
        self._worker = Worker(site.after, self._wake)
        self._working_on: tuple[HeldMessage, MessageQueue] | None = None
        self._was_inbound = False
        self._writing: HeldMessage | None = None
        self._reserved: HeldMessage | None = None
        """The delivered message whose reply has not arrived yet."""
        self._pauses = 0
        """Number of pauses that must end before the next delivery; a timer ends each."""
        self._epoch = 0

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """Return its four queues."""
        return (self.inbound_pre, self.inbound_post, self.outbound_pre, self.outbound_post)

    # Input.

    def receive(self, arrived: Arrived) -> None:
        """Receive a message from the connection; if it is logged, it is stored before its sender is answered."""
        site, name = self.site, self.settings.name
        inbound = self.settings.inbound
        if not self.is_running or (inbound is None and arrived.type is not MessageType.REPLY):
            site.outbox.append(SenderRefused(name, arrived.token))
            return
        is_reply = arrived.type is MessageType.REPLY
        mid = site.ledger.new_id()
        is_backed = inbound is not None and inbound.is_logged
        procedures = self._inbound_procedures(is_reply=is_reply)
        queue = self.inbound_pre if procedures else self.inbound_post
        priority = inbound.priority if inbound is not None and arrived.priority is None else arrived.priority
        message = Message(
            0,
            mid,
            mid,
            queue.state,
            site.ledger.next_place(),
            self.process,
            name,
            name,
            "",
            type=arrived.type,
            transaction_id=arrived.transaction_id,
            flags=Flag.USERDB if is_backed else Flag.NONE,
            created_at_ns=site.now,
            entered_at_ns=site.now,
            payload=arrived.payload,
        )
        held = HeldMessage(message)
        if priority is not None:
            held.change(priority=priority)
        site.events.append(Received(site.now, name, mid, is_backed))
        if is_reply and not procedures:
            site.live[mid] = held
            self._end_wait()
            site.end(held, Fate.KILLED)
        else:
            site.ledger.save(held)
            site.put(held, queue)
        site.outbox.append(Accepted(name, arrived.token, mid))
        self._wake()

    def arrive(self, held: HeldMessage) -> None:
        """Receive a message from a translation thread by ICL."""
        procedures = self._outbound_procedures(held.message)
        queue = self.outbound_pre if procedures else self.outbound_post
        cause = MessageCause.ARRIVE_UNPROCESSED if procedures else MessageCause.ARRIVE
        self.site.enter(held, queue, cause, outbound_at_ns=self.site.now)
        self._wake()

    def acknowledge(self, mid: MessageId, *, is_accepted: bool) -> None:
        """Process the connection's answer for the message being written; ignore a late one for another message."""
        held = self._writing
        outbound = self.settings.outbound
        if held is None or outbound is None or held.message.mid != mid:
            return
        self._writing = None
        if not is_accepted:
            self._try_again(held, ErrorCode.RETRIES, "the connection refused it")
        elif outbound.awaits_reply and held.message.type is not MessageType.REPLY:
            held.move(MessageCause.RESERVE, entered_at_ns=self.site.now)
            self.site.ledger.save(held)
            self._reserved = held
            self.site.after(outbound.reply_timeout_ns, lambda: self._time_out(held))
        else:
            held.move(MessageCause.ACKNOWLEDGE)
            self.site.end(held, Fate.DELIVERED)
        self._wake()

    # Starting and stopping.

    def start(self) -> None:
        """Start the thread, and run its procedures once in mode `start`."""
        if self.is_running:
            return
        self.is_running = True
        self._epoch += 1
        self.site.events.append(Changed(self.site.now, "thread", self.settings.name, is_up=True))
        self._run_all(ProcedureMode.START)
        self._schedule_interval()
        self._wake()
        for translation in self.site.translations.values():
            self.site.wake(translation.work)

    def stop(self) -> None:
        """Stop the thread; a message in work returns to its former position."""
        if not self.is_running:
            return
        self._run_all(ProcedureMode.SHUTDOWN)
        self.is_running = False
        self._epoch += 1
        self._worker.abort()
        if self._working_on is not None:
            held, queue = self._working_on
            self._working_on = None
            self._put_back(held, queue)
        self._interrupt_delivery()
        for translation in self.site.translations.values():
            translation.take_back(self)
        self.site.events.append(Changed(self.site.now, "thread", self.settings.name, is_up=False))

    def crash(self) -> None:
        """Drop everything in memory, because the process ended."""
        self.is_running = False
        self._epoch += 1
        self._worker.abort()
        self._working_on = self._writing = self._reserved = None
        self._hop.crash()
        for queue in self.queues:
            queue.clear()
        for translation in self.site.translations.values():
            if translation.process != self.process:
                translation.take_back(self)

    def connect(self, *, is_connected: bool) -> None:
        """Process the loss or return of the connection; a message being written may have arrived."""
        if self.is_connected == is_connected:
            return
        self.is_connected = is_connected
        self.site.events.append(Changed(self.site.now, "connection", self.settings.name, is_up=is_connected))
        if not is_connected:
            self._interrupt_delivery()
        self._wake()

    # Work.

    def work(self) -> None:
        """Begin the work that is possible now."""
        if not self.is_running:
            return
        self._hop.send(self.inbound_post, self.site.translations[self.process])
        self._write()
        if not self._worker.is_busy:
            queues = (self.inbound_pre, self.outbound_pre)
            for queue in reversed(queues) if self._was_inbound else queues:
                held = self.site.take(queue)
                if held is not None:
                    self._was_inbound = queue is self.inbound_pre
                    self._working_on = (held, queue)
                    self._worker.begin(self._process(held, queue))
                    return

    def remove(self, mid: MessageId) -> HeldMessage | None:
        """Remove and return a message for an operator; None: it is in none of the queues."""
        for queue in self.queues:
            held = queue.remove(mid)
            if held is not None:
                self.site.leave(held, queue, Fate.DELETED)
                return held
        return None

    def _process(self, held: HeldMessage, queue: MessageQueue) -> Job:
        is_inbound = queue is self.inbound_pre
        is_reply = held.message.type is MessageType.REPLY
        if is_inbound:
            context = ProcedureContext.INBOUND_REPLY if is_reply else ProcedureContext.INBOUND_DATA
            procedures = self._inbound_procedures(is_reply=is_reply)
        else:
            context = ProcedureContext.OUTBOUND_REPLY if is_reply else ProcedureContext.OUTBOUND_DATA
            procedures = self._outbound_procedures(held.message)
        try:
            verdicts = yield from run_stack(procedures, context, held.message)
        except ProcedureFailed as error:
            self._working_on = None
            self.site.fail(held, ERROR_CODES[context], str(error))
            return
        self._working_on = None
        if (asks := tps.asks_again(verdicts)) is not None:
            if 0 <= self.settings.tps_retries <= held.message.attempts:
                runs = held.message.attempts + 1
                self.site.fail(held, ErrorCode.RETRIES, f"RETRY after {runs} runs: {asks.text}".rstrip(": "))
                return
            self._put_back(held, queue, attempts=held.message.attempts + 1)
            yield self.settings.tps_retry_interval_ns
            return
        if context is ProcedureContext.INBOUND_REPLY:
            verdicts = [self._of_reply(each) for each in verdicts]
            if any(each.disposition in {Disposition.KILLREPLY, Disposition.SEND} for each in verdicts):
                self._end_wait()
        tps.apply(self.site, held, verdicts, context, self._ways(is_inbound=is_inbound))
        self._wake()

    def _of_reply(self, verdict: StackVerdict) -> StackVerdict:
        """Address a reply with CONTINUE to the thread from which the message that it answers came."""
        if verdict.disposition is not Disposition.CONTINUE:
            return verdict
        target = self._reserved.message.source if self._reserved is not None else ""
        thread = self.site.threads.get(target)
        if thread is None or thread.settings.outbound is None:
            text = f"no thread to reply to: {target!r} sends nothing" if target else "no message waits for a reply"
            return verdict._replace(disposition=Disposition.ERROR, text=text, code=ErrorCode.NO_DESTINATION_FOR_REPLY)
        message = tps.addressed(verdict.message, target)
        return verdict._replace(disposition=Disposition.SEND, message=message)

    def _ways(self, *, is_inbound: bool) -> tps.Ways:
        settings = self.settings
        if is_inbound:
            has_other = settings.outbound is not None
            is_unprocessed = settings.outbound is None or not settings.outbound.procedures
            other = self.outbound_post if is_unprocessed else self.outbound_pre
            next_queue = self.inbound_post
        else:
            has_other = settings.inbound is not None
            is_unprocessed = settings.inbound is None or not settings.inbound.procedures
            other = self.inbound_post if is_unprocessed else self.inbound_pre
            next_queue = self.outbound_post
        head = self.outbound_post if settings.outbound is not None else None
        return tps.Ways(next_queue, self.inbound_post, other if has_other else None, is_unprocessed, head)

    def _write(self) -> None:
        if self._writing is not None or self._reserved is not None or self._pauses or not self.is_connected:
            return
        held = self.site.take(self.outbound_post)
        if held is None:
            return
        held.move(MessageCause.WRITE, entered_at_ns=self.site.now)
        self.site.ledger.save(held)
        self._writing = held
        message = held.message
        self.site.outbox.append(
            ConnectionDelivery(
                self.settings.name,
                message.mid,
                message.payload,
                message.source,
                message.source_mid,
                bool(message.flags & Flag.POSSIBLE_DUPLICATE),
                message.type,
                message.priority,
                message.created_at_ns,
            )
        )

    def _interrupt_delivery(self) -> None:
        """Return messages whose delivery will not be acknowledged to the queue, flagged as possible duplicates."""
        for each in (self._writing, self._reserved):
            if each is not None:
                flags = each.message.flags | Flag.POSSIBLE_DUPLICATE
                self._put_back(each, self.outbound_post, flags=flags)
        self._writing = self._reserved = None

    def _try_again(self, held: HeldMessage, code: ErrorCode, text: str) -> None:
        outbound = self.settings.outbound
        assert outbound is not None
        attempts = held.message.attempts + 1
        if 0 <= outbound.retries < attempts:
            held.move(MessageCause.GIVE_UP)
            self.site.fail(held, code, f"{text}, {attempts} times")
            return
        self._put_back(held, self.outbound_post, attempts=attempts)
        self._pauses += 1
        self.site.after(outbound.retry_interval_ns, self._end_pause)

    def _end_pause(self) -> None:
        self._pauses -= 1
        self._wake()

    def _time_out(self, held: HeldMessage) -> None:
        if self._reserved is held:
            self._reserved = None
            held.change(flags=held.message.flags | Flag.POSSIBLE_DUPLICATE)
            self._try_again(held, ErrorCode.RETRIES, "no reply arrived in time")
            self._wake()

    def _end_wait(self) -> None:
        """End the wait for a reply: the message that it answers is delivered."""
        held, self._reserved = self._reserved, None
        if held is not None:
            held.move(MessageCause.ACKNOWLEDGE)
            self.site.end(held, Fate.DELIVERED)
            self._wake()

    def _put_back(self, held: HeldMessage, queue: MessageQueue, **changes: Any) -> None:
        """Return a message to its former position in a queue."""
        self.site.enter(held, queue, MessageCause.GIVE_BACK, position=held.message.position, **changes)

    def _inbound_procedures(self, *, is_reply: bool) -> tuple[Procedure, ...]:
        inbound = self.settings.inbound
        if inbound is None:
            return ()
        return inbound.reply_procedures if is_reply else inbound.procedures

    def _outbound_procedures(self, message: Message) -> tuple[Procedure, ...]:
        outbound = self.settings.outbound
        if outbound is None:
            return ()
        return outbound.reply_procedures if message.type is MessageType.REPLY else outbound.procedures

    def _run_all(self, mode: ProcedureMode) -> None:
        inbound, outbound = self.settings.inbound, self.settings.outbound
        stacks = []
        if inbound is not None:
            stacks += [
                (ProcedureContext.INBOUND_DATA, inbound.procedures),
                (ProcedureContext.INBOUND_REPLY, inbound.reply_procedures),
            ]
        if outbound is not None:
            stacks += [
                (ProcedureContext.OUTBOUND_DATA, outbound.procedures),
                (ProcedureContext.OUTBOUND_REPLY, outbound.reply_procedures),
            ]
        for context, procedures in stacks:
            for procedure in procedures:
                try:
                    procedure.run(mode, context, None)
                except ProcedureFailed as error:
                    what = f"procedure {procedure.name} failed in mode {mode.value}: {error}"
                    self.site.events.append(Changed(self.site.now, "thread", self.settings.name, self.is_running, what))

    def _schedule_interval(self) -> None:
        epoch = self._epoch
        if self.settings.interval_ns < INFINITE_NS:
            self.site.after(self.settings.interval_ns, lambda: self._interval(epoch))

    def _interval(self, epoch: int) -> None:
        if epoch == self._epoch and self.is_running:
            self._run_all(ProcedureMode.TIME)
            self._schedule_interval()

    def _wake(self) -> None:
        self.site.wake(self.work)
