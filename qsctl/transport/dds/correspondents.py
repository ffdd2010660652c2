"""Which process is heard in a member's name, where several announce themselves by it.

Decides: whose letters count. A name is a claim. The process whose letter came first is heard until it is gone or silent
for so long that no replica of a running member would be; those of others in its name are refused meanwhile. An
announcement without letters changes nothing, whenever its process says that it began. So a namesake and a stranger
change nobody's role while the member that they name itself, or another process than theirs, is heard; what comes in the
name of a member that is gone cannot be told from its restart.
"""

from __future__ import annotations

from typing import NamedTuple

from qsctl.instant import Nanoseconds


class _Heard(NamedTuple):
    run: str
    at_ns: Nanoseconds


class Correspondents:
    """The processes that are heard, one a name.

    Args:
        silence_ns: one that sent nothing for longer is not heard before another of its name.
    """

    def __init__(self, silence_ns: Nanoseconds) -> None:
        self._silence_ns = silence_ns
        self._heard: dict[str, _Heard] = {}

    def hears(self, now: Nanoseconds, name: str, run: str) -> bool:
        """Return whether a letter of a process counts, which is noted."""
        heard = self._heard.get(name)
        if heard is not None and heard.run != run and now - heard.at_ns <= self._silence_ns:
            return False
        self._heard[name] = _Heard(run, now)
        return True

    def forget(self, name: str, run: str) -> None:
        """Note that a process is gone."""
        heard = self._heard.get(name)
        if heard is not None and heard.run == run:
            del self._heard[name]
