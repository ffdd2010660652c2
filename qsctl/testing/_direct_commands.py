"""A command source for a service in the same process: administration commands by function call instead of DDS.

A command over DDS needs two participants and some twenty milliseconds; each test sends several.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Mapping

from qsctl.core.admin.command import Command
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.identity import Guid, SampleIdentity


class DirectCommands:
    """A queue of administration commands for a service in this process, and the replies to each command.

    Not thread-safe: only the thread that runs the service uses it.
    """

    def __init__(self) -> None:
        self._requests: deque[CommandRequest] = deque()
        self._replies: dict[SampleIdentity, list[CommandReply]] = {}
        self._writer = Guid(os.urandom(16))
        self._sent_count = 0

    def put(self, command: Command, target: str) -> SampleIdentity:
        """Enqueue a command for the service; return its identity, which `pop_replies` needs for the replies."""
        self._sent_count += 1
        identity = SampleIdentity(self._writer, self._sent_count)
        self._replies[identity] = []
        self._requests.append(CommandRequest(identity, target, command))
        return identity

    def is_answered(self, identity: SampleIdentity) -> bool:
        """Return whether the final reply to a command has arrived."""
        replies = self._replies[identity]
        return bool(replies) and not replies[-1].intermediate

    def pop_replies(self, identity: SampleIdentity) -> list[CommandReply]:
        """Return the replies to a command, and forget them."""
        return self._replies.pop(identity)

    # Methods for the service.

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return and remove the commands that wait for the service: all, or at most one."""
        count = min(len(self._requests), 1) if one else len(self._requests)
        return [self._requests.popleft() for _ in range(count)]

    @property
    def is_waiting(self) -> bool:
        """Return whether commands wait for the service."""
        return bool(self._requests)

    def receive(self, _ready: Collection[object]) -> None:
        """Do nothing: commands arrive by `put`, not from DDS readers."""

    def reply(self, message: CommandReply, _domain_ids: Mapping[str, int]) -> None:
        """Store the reply to a command; drop it if its replies have been popped."""
        if (replies := self._replies.get(message.request)) is not None:
            replies.append(message)

    def flush(self) -> bool:
        """Return True: no reply waits to be sent."""
        return True

    def close(self) -> None:
        """Do nothing: no resource is held."""
