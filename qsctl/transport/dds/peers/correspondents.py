"""The process that a member's name belongs to, where several announce themselves by it.

Decides: which process's messages are accepted. A name is a claim. The process whose message came first is accepted
until it leaves, or until it has been silent for longer than a running member can be; messages of other processes in its
name are refused meanwhile. An announcement without messages changes nothing, whatever start time it contains. So a
namesake and a stranger change no member's role while the member that they name itself, or another process than theirs,
is accepted; a stranger that uses the name of a member that left cannot be distinguished from the member's restart.
"""

from __future__ import annotations

from typing import NamedTuple

from qsctl.instant import Nanoseconds


class _Heard(NamedTuple):
    run: str
    at_ns: Nanoseconds


class Correspondents:
    """The accepted processes, one a name.

    Args:
        silence_ns: a process that sent nothing for longer has no precedence over another of its name.
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
