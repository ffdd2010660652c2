"""In which order commands came that are carried out in turns [QS 5.4].

Administrators take turns, so that none is held back by one who asks for much: a DELETE may be carried out before a
CREATE of another administrator that came earlier and waits. The queue would be there again, empty, and the one who
deleted it was answered that it is gone.

Decides: what then holds is the order in which the commands came. Such a CREATE is refused, and its sender decides.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.identity import SampleIdentity

_Names = tuple[str, ...]

REMEMBERED_MAX: Final = 10_000
"""Deletions that are remembered while earlier commands wait; the oldest are forgotten first."""


class ArrivalOrder:
    """The deletions that were carried out before commands that had come earlier."""

    def __init__(self) -> None:
        self._begun: dict[SampleIdentity, tuple[_Names, int]] = {}
        self._deleted: dict[_Names, int] = {}
        """Entities that were deleted, by their names without their kinds, with the time of the latest DELETE
        command.
        """

    def begin(self, request: CommandRequest, arrival: int) -> str:
        """Note a command whose turn it is; return why it is not carried out, or an empty text.

        Args:
            request: the command.
            arrival: the number under which it came.
        """
        match request.command:
            case DeleteQueue(resource) | DeleteSubscriber(resource):
                self._begun[request.request] = (tuple(name for _, name in resource.names), arrival)
            case CreateQueue(container, settings) | CreateSubscriber(container, settings):
                names = (*(name for _, name in container.names), settings.name)
                if any(arrival < self._deleted.get(names[:size], 0) for size in range(1, len(names) + 1)):
                    what = "queue" if isinstance(request.command, CreateQueue) else "shared subscriber"
                    return (
                        f"{what} {'/'.join(names)} was deleted by a command that came after this one and was carried "
                        "out before it: send it again if it is still to be created"
                    )
            case _:
                pass
        return ""

    def end(self, reply: CommandReply) -> None:
        """Note what was deleted, once the command is answered."""
        if reply.intermediate or not self._begun:
            return
        begun = self._begun.pop(reply.request, None)
        if begun is not None and reply.reply.retcode is ReturnCode.OK:
            names, arrival = begun
            self._deleted[names] = max(arrival, self._deleted.pop(names, 0))
            if len(self._deleted) > REMEMBERED_MAX:
                del self._deleted[next(iter(self._deleted))]

    def forget_before(self, arrival: int) -> None:
        """Forget deletions that came before all commands that wait; `arrival` is the number of the first of these."""
        if self._deleted:
            self._deleted = {names: each for names, each in self._deleted.items() if each > arrival}
