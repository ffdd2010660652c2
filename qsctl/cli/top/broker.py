"""The source of `qsctl top` for a broker: its clients with rates and discards, and the priority queues of one client.

Decides the rates: counted from one reading to the next; in the first reading, and in that of a reconnected client, the
broker's averages of the last minute.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Final

from qsctl.cli.caller import notes_go_to
from qsctl.cli.top.look import Figure, Look
from qsctl.errors import QsctlError

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.cli.output.results import Row
    from qsctl.profiles.listings.model import ClientStatistics

CLIENT_FIGURES: Final = (
    Figure("slow", " Slow", "Slow", is_text=True),
    Figure("out_per_s", "Out/s", "Out/s"),
    Figure("kilobytes_per_s", " KB/s", "KB/s", rank=1),
    Figure("lost_per_s", "Los/s", "Discards/s"),
    Figure("lost", " Lost", "Discards"),
    Figure("eliding", "Elide", "Eliding topics", rank=3),
    Figure("profile", "Prof.", "Profile", rank=2, is_text=True),
)
QUEUE_FIGURES: Final = (
    Figure("depth", "Depth", "Depth (work)"),
    Figure("messages", " Msgs", "Messages", rank=1),
    Figure("high_water_mark", "  HWM", "High-water mark", rank=1),
    Figure("max_depth", "  Max", "Max depth"),
    Figure("lost", " Lost", "Discards"),
    Figure("delivered", "Deliv", "Delivered", rank=2),
)
_Counts = tuple[int, int, int]


class BrokerSource:
    """A broker as a `LookSource`.

    Args:
        open_broker: connects to the broker.
    """

    def __init__(self, open_broker: Callable[[], AbstractContextManager[SempBroker]]) -> None:
        self._open = open_broker
        self._opened = contextlib.ExitStack()
        self._broker: SempBroker | None = None
        self._name = ""
        self._before: dict[tuple[str, str], _Counts] = {}
        self._before_s = 0.0

    def title(self) -> str:
        """Return the broker's name and the instant of the reading."""
        return f"qsctl top   {self._name}   {datetime.now().astimezone():%H:%M:%S}"

    def look(self, of: str = "") -> Look:
        """Return the clients, or the priority queues of the one that is named."""
        broker = self._broker or self._connected()
        broker.begin()
        return self._queues(broker, of) if of else self._clients(broker)

    def steer(self, speed_steps: int, seek_steps: int, *, is_stopped: bool) -> None:
        """Do nothing: only a replayed run can be steered."""

    def close(self) -> None:
        """Close the connection."""
        self._broker = None
        self._opened.close()

    def _connected(self) -> SempBroker:
        with notes_go_to():  # they would be written over the screen
            self._broker = self._opened.enter_context(self._open())
        self._name = self._broker.name
        return self._broker

    def _clients(self, broker: SempBroker) -> Look:
        clients = broker.listings("clients").statistics
        now_s = time.monotonic()
        elapsed_s = now_s - self._before_s
        counted = {(each.message_vpn or "", each.name): _counts(each) for each in clients}
        rows = [self._row(each, elapsed_s) for each in clients]
        self._before, self._before_s = counted, now_s
        slow = sum(row["slow"] == "yes" for row in rows)
        summary = f"{len(rows)} client{'s' * (len(rows) != 1)}   slow {slow}"
        return Look("Client", CLIENT_FIGURES, rows, summary, "" if rows else "No client is connected.")

    def _row(self, client: ClientStatistics, elapsed_s: float) -> Row:
        counts = _counts(client)
        before = self._before.get((client.message_vpn or "", client.name))
        rates: tuple[float, float, float | None]
        if before is None or elapsed_s <= 0 or any(now < then for now, then in zip(counts, before, strict=True)):
            rates = (client.sent_messages_per_second or 0, client.sent_bytes_per_second or 0, None)
        else:
            messages, octets, lost = (
                (now - then) / elapsed_s for now, then in zip(counts, before, strict=True)
            )  # fmt: skip
            rates = messages, octets, lost
        return {
            "name": client.name,
            "slow": {True: "yes", False: "no", None: "?"}[client.slow_subscriber],
            "out_per_s": rates[0],
            "kilobytes_per_s": rates[1] / 1024,
            "lost_per_s": rates[2],
            "lost": client.discarded_messages,
            "eliding": client.eliding_topics,
            "profile": client.client_profile or "",
        }

    def _queues(self, broker: SempBroker, name: str) -> Look:
        try:
            found = broker.client_queues(name).clients
        except QsctlError as error:
            return Look("Queue", QUEUE_FIGURES, [], "", f"SEMP v1 alone has them: {error.message}")
        rows: list[Row] = [
            {
                "name": queue.queue,
                "depth": queue.length_work_units,
                "messages": queue.length_messages,
                "high_water_mark": queue.high_water_mark_work_units,
                "max_depth": queue.max_depth_work_units,
                "lost": queue.discarded_messages,
                "delivered": queue.delivered_messages,
            }
            for client in found
            if client.name == name
            for queue in client.queues
        ]
        return Look("Queue", QUEUE_FIGURES, rows, f"of {name}", "" if rows else "It is not connected any more.")


def _counts(client: ClientStatistics) -> _Counts:
    return client.sent_messages or 0, client.sent_bytes or 0, client.discarded_messages or 0
