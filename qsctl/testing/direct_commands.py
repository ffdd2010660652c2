"""Administration commands from another thread of the service's own process, instead of over DDS.

A command over DDS takes two participants and some twenty milliseconds; tests send several each.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Mapping

from qsctl.core.admin.command import Command
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.identity import Guid, SampleIdentity


class DirectCommands:
    """A service's source of commands: those that `put` gives it, with the replies by command.

    One thread uses it at a time: the one that runs the service.
    """

    def __init__(self) -> None:
        self._requests: deque[CommandRequest] = deque()
        self._replies: dict[SampleIdentity, list[CommandReply]] = {}
        self._writer = Guid(os.urandom(16))
        self._sent_count = 0

    def put(self, command: Command, target: str) -> SampleIdentity:
        """Put a command in line; return its identity, by which its replies are kept until `pop_replies`."""
        self._sent_count += 1
        identity = SampleIdentity(self._writer, self._sent_count)
        self._replies[identity] = []
        self._requests.append(CommandRequest(identity, target, command))
        return identity

    def is_answered(self, identity: SampleIdentity) -> bool:
        """Return whether the last reply to a command has come."""
        replies = self._replies[identity]
        return bool(replies) and not replies[-1].intermediate

    def pop_replies(self, identity: SampleIdentity) -> list[CommandReply]:
        """Return the replies to a command, and keep no more of them."""
        return self._replies.pop(identity)

    # The service's half.

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return the commands that have come, or one of them."""
        count = min(len(self._requests), 1) if one else len(self._requests)
        return [self._requests.popleft() for _ in range(count)]

    @property
    def is_waiting(self) -> bool:
        """Return whether commands have come and are not given yet."""
        return bool(self._requests)

    def receive(self, _ready: Collection[object]) -> None:
        """Do nothing: `put` puts commands in line."""

    def reply(self, message: CommandReply, _domain_ids: Mapping[str, int]) -> None:
        """Answer a command; one whose replies are not awaited any more is answered in vain."""
        if (replies := self._replies.get(message.request)) is not None:
            replies.append(message)

    def flush(self) -> bool:
        """Return whether every reply has left: each has."""
        return True

    def close(self) -> None:
        """Take no more; nothing is held."""
