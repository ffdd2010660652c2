"""Administration commands from another thread of the service's own process, instead of over DDS.

A command over DDS takes two participants and some twenty milliseconds; tests send several each.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping

from qsctl.core.admin.command import Command
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.errors import NoAnswer
from qsctl.identity import Guid, SampleIdentity


class DirectCommands:
    """A service's source of commands, which its own thread polls, and what other threads send commands through."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: deque[CommandRequest] = deque()
        self._replies: dict[SampleIdentity, list[CommandReply]] = {}
        self._writer = Guid(os.urandom(16))
        self._sent_count = 0
        self.wake: Callable[[], None] = lambda: None
        """Ends a wait of the service's thread."""

    def request(self, command: Command, target: str, timeout_s: float) -> list[CommandReply]:
        """Send a command and wait for its replies, from any thread but the service's.

        Raises:
            NoAnswer: the last one has not come in time.
        """
        with self._changed:
            self._sent_count += 1
            identity = SampleIdentity(self._writer, self._sent_count)
            replies = self._replies[identity] = []
            self._requests.append(CommandRequest(identity, target, command))
        deadline = time.monotonic() + timeout_s
        self.wake()
        with self._changed:
            is_answered = self._changed.wait_for(
                lambda: bool(replies) and not replies[-1].intermediate, deadline - time.monotonic()
            )
            del self._replies[identity]
        if not is_answered:
            raise NoAnswer(f"the service of tests did not answer a command in {timeout_s:g} s")
        return replies

    # The service's half.

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return the commands that have come, or one of them."""
        with self._changed:
            count = min(len(self._requests), 1) if one else len(self._requests)
            return [self._requests.popleft() for _ in range(count)]

    @property
    def is_waiting(self) -> bool:
        """Return whether commands have come and are not given yet."""
        return bool(self._requests)

    def receive(self, _ready: Collection[object]) -> None:
        """Do nothing: `request` puts commands in line."""

    def reply(self, message: CommandReply, _domain_ids: Mapping[str, int]) -> None:
        """Answer a command; one that waits no more is answered in vain."""
        with self._changed:
            if (replies := self._replies.get(message.request)) is not None:
                replies.append(message)
                self._changed.notify_all()

    def flush(self) -> bool:
        """Return whether every reply has left: each has."""
        return True

    def close(self) -> None:
        """Take no more; nothing is held."""
