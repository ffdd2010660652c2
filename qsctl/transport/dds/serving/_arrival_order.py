"""Protection of the order of arrival for commands that are carried out in turns [QS 5.4].

Administrators take turns, so that none waits for another's many commands: a DELETE may be carried out before another
administrator's CREATE that arrived earlier. The CREATE would then recreate the queue, empty, although the DELETE was
answered.

Decides: in such a case the order of arrival applies. The CREATE is refused, and its sender decides.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.identity import SampleIdentity

_Names = tuple[str, ...]

REMEMBERED_MAX: Final = 10_000
"""Number of deletions that are remembered while earlier commands wait; the oldest are forgotten first."""


class ArrivalOrder:
    """The deletions that were carried out before commands that had arrived earlier."""

    def __init__(self) -> None:
        self._begun: dict[SampleIdentity, tuple[_Names, int]] = {}
        self._deleted: dict[_Names, int] = {}
        """Deleted resources, by their names without the kinds, with the arrival number of the latest DELETE."""

    def begin(self, request: CommandRequest, arrival: int) -> str:
        """Register a command that is about to be carried out; return the reason of a refusal, or an empty text.

        Args:
            request: the command.
            arrival: its arrival number.
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
        """Record the deletion by a command that is answered."""
        if reply.intermediate or not self._begun:
            return
        begun = self._begun.pop(reply.request, None)
        if begun is not None and reply.reply.retcode is ReturnCode.OK:
            names, arrival = begun
            self._deleted[names] = max(arrival, self._deleted.pop(names, 0))
            if len(self._deleted) > REMEMBERED_MAX:
                del self._deleted[next(iter(self._deleted))]

    def forget_before(self, arrival: int) -> None:
        """Forget deletions that arrived before all waiting commands; `arrival` is the number of the first of these."""
        if self._deleted:
            self._deleted = {names: each for names, each in self._deleted.items() if each > arrival}
