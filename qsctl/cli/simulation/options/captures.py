"""`--from-broker` of `init` and `calibrate`: captures of a broker, or the broker itself, queried twice.

Decides what a text refers to: an address or a context is a broker, anything else a file; two files are in the order of
time. A broker is queried twice, `--interval` apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli.broker_options import BrokerTimeoutOption, BrokerVpnOption, http_client
from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.broker.semp import SempBroker
    from qsctl.profiles.client_profile import ClientProfile
    from qsctl.profiles.listings.model import Listings
    from qsctl.sim.captured.observed import CapturedClients

FromBrokerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from-broker",
        metavar="URL|CONTEXT|CAPTURE",
        rich_help_panel="Broker",
        help="Broker to read from by SEMP, or a captured file of `show client * stats queue`, `… connections wide` or "
        "SEMP replies; a second file, captured later, gives the rates between the two.",
    ),
]
IntervalOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        rich_help_panel="Broker",
        help="Time between the two captures, a duration such as 60s; between two readings of a broker 10s by default.",
        show_default="the difference of the clients' uptimes",
    ),
]
CapturedProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--client-profile",
        metavar="FILE[#NAME]",
        rich_help_panel="Broker",
        help="Client profiles of the captured broker, in any format; may be repeated.",
    ),
]
_LOOK_S = 10.0
_FLOWS_OF = 50
"""Largest number of clients whose flows are queried, each by a request of its own."""


@dataclass(frozen=True)
class Captures(OptionGroup):
    """The options of a broker's listings, at one instant or at two."""

    from_broker: FromBrokerOption = None
    interval: IntervalOption = ""
    message_vpn: BrokerVpnOption = ""
    client_profile: CapturedProfileOption = None
    broker_timeout: BrokerTimeoutOption = "10s"

    @property
    def source(self) -> str:
        """Return the names of the sources as text."""
        return " and ".join(self.from_broker or ())

    def read(self) -> tuple[CapturedClients, list[ClientProfile]]:
        """Return the clients with their rates, and the client profiles.

        Raises:
            UsageError: there is no capture, or more than two.
            QsctlError: a file cannot be read, or the broker does not answer.
        """
        from qsctl.sim.captured.observed import observe

        places = self.from_broker or []
        seconds = self.seconds()
        if len(places) == 1 and self._is_broker(places[0]):
            before, after, profiles, between = self._asked(places[0], seconds)
            return observe(after, before, between), [*profiles, *self._profiles()]
        if not 1 <= len(places) <= 2 or any(self._is_broker(each) for each in places):
            raise UsageError(
                f"--from-broker is given {len(places)} times",
                remedy="Give one broker, one captured file, or two in the order of time.",
            )
        listings = [self._listed(each) for each in places]
        before_or_none = listings[0] if len(listings) == 2 else None
        return observe(listings[-1], before_or_none, seconds), self._profiles()

    def seconds(self) -> float | None:
        """Return the time between two captures in seconds; None if it is not given.

        Raises:
            UsageError: it is not a duration above zero.
        """
        from qsctl.cli.location import seconds

        if not self.interval:
            return None
        found = seconds(self.interval, "--interval")
        if not found > 0:
            raise UsageError(f"--interval {self.interval} is not a time between two", remedy="Write it as in 60s.")
        return found

    @staticmethod
    def _is_broker(place: str) -> bool:
        from qsctl.cli.context.file import read_contexts

        if "://" in place or "@" in place:
            return True
        return not Path(place).exists() and place in read_contexts().by_name

    @staticmethod
    def _listed(place: str) -> Listings:
        from qsctl.cli.monitoring.listing_source import load_listing

        return load_listing(Path(place))

    def _profiles(self) -> list[ClientProfile]:
        from qsctl.cli.profiles.options import file_and_name, open_file

        found = []
        for each in self.client_profile or ():
            path, name = file_and_name(each)
            found += [one.profile for one in open_file(path, None).profiles if name in {None, one.profile.name}]
        return found

    def _asked(
        self, place: str, seconds: float | None
    ) -> tuple[Listings, Listings, Sequence[ClientProfile], float]:  # fmt: skip
        """Query a broker twice; return both listings, its client profiles, and the seconds between."""
        from qsctl.broker.semp import SempBroker
        from qsctl.cli.monitoring.listing_source import joined
        from qsctl.cli.profiles.options import noted

        wanted_s = _LOOK_S if seconds is None else seconds
        with http_client(place, self.broker_timeout, "--from-broker") as client:
            broker = SempBroker(client, self.message_vpn)
            profiles = [each.profile for each in noted(broker.profiles()).profiles]
            began = time.monotonic()
            before = _look(broker)
            time.sleep(max(0.0, began + wanted_s - time.monotonic()))
            broker.begin()
            between = time.monotonic() - began
            after = _look(broker)
            after = joined(after, broker.flows(_guaranteed(after)))
        return before, after, profiles, between


def _guaranteed(found: Listings) -> list[tuple[str, str]]:
    """Return the clients that received guaranteed messages, by message VPN and name; those with most messages first."""
    counts = {
        (each.message_vpn or "default", each.name): row.delivered_messages or 0
        for each in found.clients
        for row in each.queues
        if row.queue == "G-1" and row.delivered_messages
    }
    return sorted(counts, key=lambda each: -counts[each])[:_FLOWS_OF]


def _look(broker: SempBroker) -> Listings:
    """Query the listings of a broker's clients."""
    from qsctl.cli.monitoring.listing_source import joined, optional

    return joined(broker.listings("clients"), *optional(broker.client_queues, broker.connections))
