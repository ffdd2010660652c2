"""Commands on their way from request to last reply [QS 5].

Decides: which commands are this service's, what each reply rests on, and when a long answer goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from qsctl.core.admin.command import (
    FlagSamples,
    FlushQueue,
    GetMessages,
    InsertSamples,
    MoveSamples,
    RemoveSamples,
)
from qsctl.core.admin.handle import LongAnswer, handle
from qsctl.core.admin.reply import Reply
from qsctl.core.admin.target import matches
from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier

_OF_SAMPLES = FlushQueue | GetMessages | InsertSamples | FlagSamples | RemoveSamples | MoveSamples

Send: TypeAlias = Callable[[ResourceIdentifier | None, CommandReply], None]
"""Sends a reply that rests on the records of this queue; None: on those of the service."""


class _Begun:
    """A command that has not had its last reply."""

    __slots__ = ("answer", "queue", "request")

    def __init__(self, request: SampleIdentity, queue: ResourceIdentifier | None, answer: LongAnswer) -> None:
        self.request = request
        self.queue = queue
        self.answer = answer


class Answers:
    """Answers commands, long ones a share at a time.

    Args:
        host: what commands see and change.
        send: where replies go.
    """

    def __init__(self, host: HostedService, send: Send) -> None:
        self.reads_on = True
        """Whether long answers go on. A driver whose replies wait for room sets it to False: they would pile up."""
        self._host = host
        self._send = send
        self._begun: list[_Begun] = []

    @property
    def is_answering(self) -> bool:
        """Return whether a command has not had its last reply."""
        return bool(self._begun)

    @property
    def is_due(self) -> bool:
        """Return whether `go_on` has something to do."""
        return any(map(self._may_go_on, self._begun))

    def receive(self, now: Nanoseconds, request: CommandRequest) -> None:
        """Answer a command meant for this service; one for another gets no reply [QS 5.2]."""
        if not matches(request.target, self._host.application_name):
            return
        command = request.command
        queue = command.queue if isinstance(command, _OF_SAMPLES) else None
        answer = handle(self._host, now, command)
        if isinstance(answer, LongAnswer):
            self._continue(now, _Begun(request.request, queue, answer))
        else:
            self._reply(request.request, queue, answer)

    def go_on(self, now: Nanoseconds) -> None:
        """Give the next share of each long answer that may go on."""
        begun, self._begun = self._begun, []
        for each in begun:
            if self._may_go_on(each):
                self._continue(now, each)
            else:
                self._begun.append(each)

    def _may_go_on(self, begun: _Begun) -> bool:
        return self.reads_on or not begun.answer.waits_for_room

    def _continue(self, now: Nanoseconds, begun: _Begun) -> None:
        replies = begun.answer.go_on(now)
        self._reply(begun.request, begun.queue, replies, more_follow=not begun.answer.is_over)
        if not begun.answer.is_over:
            self._begun.append(begun)

    def _reply(
        self,
        request: SampleIdentity,
        queue: ResourceIdentifier | None,
        replies: Sequence[Reply],
        *,
        more_follow: bool = False,
    ) -> None:
        last = len(replies) if more_follow else len(replies) - 1
        for index, reply in enumerate(replies):
            self._send(queue, CommandReply(request, self._host.application_name, reply, intermediate=index < last))
