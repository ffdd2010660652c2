"""The results of `qsctl show`: a listing as the broker prints it, or its figures as rows, documents and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.results import Block, Plain, Result, Row, TextBlock, fields_of

if TYPE_CHECKING:
    from qsctl.profiles.client_profile import ClientProfile
    from qsctl.profiles.listings.model import Listings

_QUEUE_HELP: Mapping[str, str] = {
    "queue": "the priority queue: G-1, D-1, D-2, D-3, C-1; egress of a TIBCO client",
    "length_messages": "messages in the queue",
    "length_work_units": "work units of 2,048 bytes in the queue",
    "high_water_mark_work_units": "most work units that were in the queue",
    "max_depth_work_units": "work units above which messages are discarded",
    "discarded_messages": "messages discarded from the queue",
    "delivered_messages": "messages delivered from the queue",
}


@dataclass(frozen=True)
class ShownListing(Result):
    """One kind of listing; `listings` contains objects of that kind only."""

    listings: Listings
    notes: tuple[str, ...] = ()
    empty: str = ""
    """The text that is printed if the listing is empty."""

    field_help: ClassVar[Mapping[str, str]] = {
        "client": "the client's name",
        "message_vpn": "the client's message VPN; null where the source has none",
        **_QUEUE_HELP,
        "neighbor": "of `show cspf neighbor`: the neighbour's name, in place of the client",
        "connection": "of `show cspf neighbor`: the data connection, Conn-1 to Conn-4; control queues have none",
        "high_water_mark_messages": "of `show cspf neighbor`: most messages in a control queue",
        "slow_subscriber": "whether the client is a slow subscriber",
        "blocked_percent": "share of the last minute in which data could not be sent, with penalties",
        "state": "of `connections wide`: the connection's state; with addresses, queues, windows, retransmits",
        "clients": "-o json and yaml: every labelled value of a client, and its queues",
        "neighbors": "-o json and yaml: every labelled value of a neighbour, its control queues and connections",
        "slow_subscribers": "-o json and yaml: one object a row",
        "connections": "-o json and yaml: one object a row",
        "notes": "-o json and yaml: what to know of the source",
    }

    def document(self) -> Plain:
        """Return the listed objects, nested."""
        listed = fields_of(self.listings, "clients", "neighbors", "slow_subscribers", "connections")
        return {**{name: rows for name, rows in listed.items() if rows}, "notes": list(self.notes)}

    def rows(self) -> Sequence[Row]:
        """Return one row per queue; for slow subscribers and connections, one per client."""
        return list(self._rows())

    def blocks(self) -> Sequence[Block]:
        """Return the listing, as the broker prints it."""
        from qsctl.profiles.listings.write import (
            write_clients,
            write_connections,
            write_neighbors,
            write_slow_subscribers,
        )

        listings = self.listings
        texts = []
        if listings.clients:
            texts.append(write_clients(listings.clients))
        if listings.neighbors:
            texts.append(write_neighbors(listings.neighbors))
        if listings.slow_subscribers:
            texts.append(write_slow_subscribers(listings.slow_subscribers))
        if listings.connections:
            texts.append(write_connections(listings.connections))
        if not texts:
            return [TextBlock(self.empty, "faint")]
        # One text, since a blank line separates the tables; notes are on standard error, so that it can be read again.
        return [TextBlock("\n".join(texts).rstrip("\n"))]

    def prometheus(self) -> str:
        """Return the figures as metrics."""
        from qsctl.profiles.listings.prometheus import prometheus_text

        return prometheus_text(self.listings)

    def _rows(self) -> Iterator[Row]:
        for client in self.listings.clients:
            for queue in client.queues:
                yield {"client": client.name, "message_vpn": client.message_vpn, **fields_of(queue)}
        for neighbor in self.listings.neighbors:
            for control in neighbor.control_queues:
                yield {"neighbor": neighbor.name, "connection": None, **fields_of(control)}
            for connection in neighbor.connections:
                for queue in connection.queues:
                    yield {"neighbor": neighbor.name, "connection": connection.name, **fields_of(queue)}
        for one in (*self.listings.slow_subscribers, *self.listings.connections):
            row = fields_of(one)
            yield {"client": row.pop("name"), **row}


@dataclass(frozen=True)
class ListedProfile:
    """A client profile and its users, each with type, name and number of active clients."""

    profile: ClientProfile
    users: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class ShownProfiles(Result):
    """Client profiles as the broker lists them."""

    profiles: tuple[ListedProfile, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "name": "the profile's name; with every setting of `qsctl client-profile show` beside it",
        "message_vpn": "the message VPN that it belongs to",
        "users": "-o json and yaml: client usernames that have it: type, name and active clients",
    }

    def document(self) -> Plain:
        """Return a list with one object per profile."""
        return [
            {
                **fields_of(each.profile),
                "users": [{"type": kind, "name": name, "active": count} for kind, name, count in each.users],
            }
            for each in self.profiles
        ]

    def rows(self) -> Sequence[Row]:
        """Return one row per profile."""
        return [fields_of(each.profile) for each in self.profiles]

    def blocks(self) -> Sequence[Block]:
        """Return the listings."""
        from qsctl.profiles.formats.listing import detail

        texts = [detail(each.profile, users=each.users) for each in self.profiles]
        return [TextBlock("\n".join(texts).rstrip("\n"))]
