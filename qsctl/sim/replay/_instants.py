"""The instants at which a live service acted on its queues, as far as a recording contains them."""

from __future__ import annotations

from collections.abc import Container, Iterator

from qsctl.instant import Nanoseconds
from qsctl.sim.replay.recording import Recorded
from qsctl.sim.scenario.rules.replay import short_names


def instants_of(recorded: Recorded, queues: Container[str] | None) -> list[Nanoseconds]:
    """Return the instants of these queues, or of all (None), sorted, without duplicates."""
    return sorted(set(_instants(recorded, queues)))


def _instants(recorded: Recorded, queues: Container[str] | None) -> Iterator[Nanoseconds]:
    for arrival in recorded.arrivals:
        if queues is None or arrival.queue in queues:
            yield arrival.at_ns
            if arrival.answered_ns is not None:
                yield arrival.answered_ns
    for delivery in recorded.deliveries:
        if queues is None or delivery.queue in queues:
            yield delivery.sent_ns
            for at_ns in (delivery.answered_ns, delivery.late_ns):
                if at_ns is not None:
                    yield at_ns
    for peer in recorded.peers:
        if queues is None or peer.queue in queues or peer.topic is not None:
            yield peer.at_ns
    for command in recorded.commands:
        yield command.at_ns
    full_names = short_names(recorded.service)
    for shown, instants in recorded.left.items():
        if queues is None or full_names.get(shown, shown) in queues:
            yield from instants
