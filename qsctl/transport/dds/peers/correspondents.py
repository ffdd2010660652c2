"""The choice of one process for each member's name, if several processes announce themselves by it.

Decides: which process's messages are accepted. The process that sent the first message is accepted until it leaves, or
until it has been silent for longer than a running member can be; meanwhile messages of other processes in its name are
refused. An announcement without messages changes nothing, whatever start time it contains. A process with a wrong name
therefore changes no member's role while the real member, or another process than itself, is accepted. Where letters are
signed it never comes as far as here; where they are not, one that uses the name of a member that left cannot be
distinguished from the member's restart.
"""

from __future__ import annotations

from typing import NamedTuple

from qsctl.instant import Nanoseconds


class _Heard(NamedTuple):
    run: str
    at_ns: Nanoseconds


class Correspondents:
    """The accepted process of each name.

    Args:
        silence_ns: a process that has been silent for longer has no precedence over another of its name.
    """

    def __init__(self, silence_ns: Nanoseconds) -> None:
        self._silence_ns = silence_ns
        self._heard: dict[str, _Heard] = {}

    def accepts(self, now: Nanoseconds, name: str, run: str) -> bool:
        """Return whether a message of a process is accepted, and if so, record its time."""
        heard = self._heard.get(name)
        if heard is not None and heard.run != run and now - heard.at_ns <= self._silence_ns:
            return False
        self._heard[name] = _Heard(run, now)
        return True

    def is_accepted(self, now: Nanoseconds, name: str) -> bool:
        """Return whether a process of a name is accepted now."""
        heard = self._heard.get(name)
        return heard is not None and now - heard.at_ns <= self._silence_ns

    def run_of(self, name: str) -> str | None:
        """Return the run of the process of a name that was accepted last, or None."""
        heard = self._heard.get(name)
        return None if heard is None else heard.run

    def forget(self, name: str, run: str) -> None:
        """Forget a process that is gone."""
        heard = self._heard.get(name)
        if heard is not None and heard.run == run:
            del self._heard[name]
