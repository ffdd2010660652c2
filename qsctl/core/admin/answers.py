"""Processing of administration commands from the request to the last reply [QS 5].

Decides: which commands address this service, which records each reply must wait for, and when a long answer continues.
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
"""Send a reply that is released once this queue's records are committed; None: the service's own records."""


class _Begun:
    """A command whose last reply has not been sent."""

    __slots__ = ("answer", "queue", "request")

    def __init__(self, request: SampleIdentity, queue: ResourceIdentifier | None, answer: LongAnswer) -> None:
        self.request = request
        self.queue = queue
        self.answer = answer


class Answers:
    """The command processor of a service; it spreads long answers over several turns.

    Args:
        host: the service that the commands read and change.
        send: called with each reply and the queue whose records the reply rests on.
    """

    def __init__(self, host: HostedService, send: Send) -> None:
        self.reads_on = True
        """Whether answers of many replies continue; a driver sets it to False while outgoing replies are backed up."""
        self._host = host
        self._send = send
        self._begun: list[_Begun] = []

    @property
    def is_answering(self) -> bool:
        """Return whether a command has not had its last reply."""
        return bool(self._begun)

    @property
    def is_due(self) -> bool:
        """Return whether `go_on` has an answer that it may continue."""
        return any(map(self._may_go_on, self._begun))

    def receive(self, now: Nanoseconds, request: CommandRequest) -> None:
        """Answer a command that addresses this service; ignore one for another service [QS 5.2]."""
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
        """Send the next part of each long answer that may continue."""
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
