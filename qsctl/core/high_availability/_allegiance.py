"""The master that a replica follows, and the vote that it withholds from others meanwhile [QS 7.1.2].

Decides: when a replica considers its master lost, and how long it votes for no other.

A master delivers as long as a quorum confirmed its frames within `master_timeout`. No other delivers meanwhile because
of this: a replica that confirms a frame votes for no other within `master_timeout`, whatever else it receives, also of
a later epoch; and a later master needs the vote of one of that quorum. A process does not know the confirmations of its
predecessor, so it withholds its vote from its start on. Clocks may differ, but must run alike: `steady_time` handles
one that is set back.
"""

from __future__ import annotations

from qsctl.instant import Nanoseconds


class Allegiance:
    """One replica's, to the master that it follows.

    Args:
        master_timeout_ns: the setting.
    """

    def __init__(self, master_timeout_ns: Nanoseconds) -> None:
        self._timeout_ns = master_timeout_ns
        self._heard_at_ns: Nanoseconds | None = None
        """When there was a sign of a master; None: never, or it leads no more."""
        self._latest_sign_at_ns: Nanoseconds | None = None
        self._bound_at_ns: Nanoseconds | None = None
        """When it confirmed something at the latest, as far as it can know."""

    def start(self, now: Nanoseconds) -> None:
        """Withhold the vote: the process before this one may have confirmed something just now."""
        self._bound_at_ns = now

    def hear(self, now: Nanoseconds) -> None:
        """Note a sign of the master, which will be confirmed."""
        self._heard_at_ns = self._latest_sign_at_ns = self._bound_at_ns = now

    def note_led(self, heard_at_ns: Nanoseconds) -> None:
        """Note when a quorum confirmed frames of this replica last, which was master until now."""
        self._latest_sign_at_ns = heard_at_ns

    def end(self) -> None:
        """Owe nothing more: the master does not lead any more, or was this replica."""
        self._heard_at_ns = self._bound_at_ns = None

    @property
    def heard_at_ns(self) -> Nanoseconds | None:
        """The instant of the latest sign of a master; None: there was none, or it leads no more."""
        return self._heard_at_ns

    @property
    def latest_sign_at_ns(self) -> Nanoseconds | None:
        """The instant of the latest sign of any master, also of one that leads no more or was this replica; None: there
        was none.
        """
        return self._latest_sign_at_ns

    def has_lost_master(self, now: Nanoseconds) -> bool:
        """Return whether there was no sign of a master for `master_timeout`."""
        return self._heard_at_ns is None or now - self._heard_at_ns > self._timeout_ns

    def withholds_vote(self, now: Nanoseconds) -> bool:
        """Return whether a master may still deliver for what this replica confirmed."""
        return self._bound_at_ns is not None and now - self._bound_at_ns <= self._timeout_ns
