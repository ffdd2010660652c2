"""The reasons for which a peer's reader or writer does not match ours, as text [DDS 2.2.3, XTYPES 7.2.4].

Decides: which differences prevent a match. The library reports only that a policy or a type did not match, without the
values; here both sides' announcements are compared, and each reason states both values.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.transport.dds.peers.endpoint_policies import (
    DESTINATION_ORDERS,
    DURABILITIES,
    FOREVER,
    LIVELINESSES,
    OWNERSHIPS,
    RELIABILITIES,
    REPRESENTATIONS,
    SCOPES,
    EndpointPolicies,
)
from qsctl.transport.dds.peers.type_outlines import Bounded, OutlineMember, TypeOutline

DIFFERENCES_MAX: Final = 3
"""Maximum number of differences of two types that are listed; the rest is counted."""


class MismatchKind(StrEnum):
    """A kind of incompatibility between two endpoints."""

    NAME = "name"
    TYPE = "type"
    EXTENSIBILITY = "extensibility"
    KEY = "key"
    BOUND = "bound"
    REPRESENTATION = "representation"
    RELIABILITY = "reliability"
    DURABILITY = "durability"
    OWNERSHIP = "ownership"
    PARTITION = "partition"
    LIVELINESS = "liveliness"
    DEADLINE = "deadline"
    LATENCY_BUDGET = "latency_budget"
    DESTINATION_ORDER = "destination_order"
    PRESENTATION = "presentation"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One incompatibility, with a sentence that states the peer's value and the service's."""

    kind: MismatchKind
    text: str


@dataclass(frozen=True, slots=True)
class Side:
    """An endpoint as announced in discovery. `outline` None: its type is not described, or not yet."""

    is_writer: bool
    type_name: str
    policies: EndpointPolicies
    outline: TypeOutline | None = None


def mismatches(peer: Side, ours: Side) -> list[Mismatch]:
    """Return the reasons for which a peer's endpoint does not match ours, and differing bounds of matching types.

    Args:
        peer: the peer's endpoint.
        ours: an endpoint of the other kind on the same topic.
    """
    found: list[Mismatch] = []
    if peer.type_name != ours.type_name:
        found.append(
            Mismatch(MismatchKind.NAME, f"its type is named {peer.type_name!r}, here it is {ours.type_name!r}")
        )
    elif peer.outline is not None and ours.outline is not None:
        found += type_mismatches(peer.outline, ours.outline, peer_writes=peer.is_writer)
    found += _policy_mismatches(peer, ours)
    return found


def _policy_mismatches(peer: Side, ours: Side) -> Iterator[Mismatch]:
    offered, asked = (peer.policies, ours.policies) if peer.is_writer else (ours.policies, peer.policies)
    writes, reads = ("it writes", "the service reads") if peer.is_writer else ("the service writes", "it reads")
    offers, asks = ("it offers", "the service asks for") if peer.is_writer else ("the service offers", "it asks for")

    def words(kind: MismatchKind, names: tuple[str, ...], offer: int, request: int) -> Mismatch:
        return Mismatch(kind, f"{offers} {_word(names, offer)}, {asks} {_word(names, request)}")

    if offered.representations[0] not in asked.representations:
        represented = " or ".join(REPRESENTATIONS.get(each, str(each)) for each in asked.representations)
        first = REPRESENTATIONS.get(offered.representations[0], str(offered.representations[0]))
        yield Mismatch(MismatchKind.REPRESENTATION, f"{writes} {first}, {reads} {represented}")
    if offered.reliability < asked.reliability:
        yield words(MismatchKind.RELIABILITY, RELIABILITIES, offered.reliability, asked.reliability)
    if offered.durability < asked.durability:
        yield words(MismatchKind.DURABILITY, DURABILITIES, offered.durability, asked.durability)
    if offered.ownership != asked.ownership:
        yield words(MismatchKind.OWNERSHIP, OWNERSHIPS, offered.ownership, asked.ownership)
    if not partitions_meet(peer.policies.partitions, ours.policies.partitions):
        yield Mismatch(
            MismatchKind.PARTITION,
            f"it is in partition {_partitions(peer.policies)}, the service in {_partitions(ours.policies)}",
        )
    if offered.liveliness < asked.liveliness:
        yield words(MismatchKind.LIVELINESS, LIVELINESSES, offered.liveliness, asked.liveliness)
    if offered.destination_order < asked.destination_order:
        yield words(
            MismatchKind.DESTINATION_ORDER, DESTINATION_ORDERS, offered.destination_order, asked.destination_order
        )
    for kind, offer_ns, request_ns in (
        (MismatchKind.LIVELINESS, offered.liveliness_lease_ns, asked.liveliness_lease_ns),
        (MismatchKind.DEADLINE, offered.deadline_ns, asked.deadline_ns),
        (MismatchKind.LATENCY_BUDGET, offered.latency_budget_ns, asked.latency_budget_ns),
    ):
        if offer_ns > request_ns:
            yield Mismatch(kind, f"{offers} {_duration(offer_ns)}, {asks} {_duration(request_ns)} at most")
    if (
        offered.access_scope < asked.access_scope
        or (asked.coherent_access and not offered.coherent_access)
        or (asked.ordered_access and not offered.ordered_access)
    ):
        yield words(MismatchKind.PRESENTATION, SCOPES, offered.access_scope, asked.access_scope)


def partitions_meet(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> bool:
    """Return whether two endpoints have a common partition; patterns match names but no patterns [DDS 2.2.3.13]."""
    return any(_partition_meets(a, b) for a in one or (b"",) for b in other or (b"",))


def _partition_meets(one: bytes, other: bytes) -> bool:
    if _is_pattern(one) == _is_pattern(other):
        return one == other
    pattern, name = (one, other) if _is_pattern(one) else (other, one)
    return fnmatch.fnmatchcase(name.decode("latin-1"), pattern.decode("latin-1"))


def type_mismatches(peer: TypeOutline, ours: TypeOutline, *, peer_writes: bool) -> list[Mismatch]:
    """Return the differences that make two types incompatible, at most `DIFFERENCES_MAX` of them.

    Args:
        peer: the peer's type.
        ours: ours.
        peer_writes: whether the peer is the writer: a writer's bounds must not be wider than its reader's.
    """
    found = list(_differences(peer, ours, "", peer_writes))
    if len(found) > DIFFERENCES_MAX:
        more = len(found) - DIFFERENCES_MAX
        last = found[DIFFERENCES_MAX - 1]
        found[DIFFERENCES_MAX - 1 :] = [Mismatch(last.kind, f"{last.text}, and {more} more")]
    return found


def _differences(peer: TypeOutline, ours: TypeOutline, path: str, peer_writes: bool) -> Iterator[Mismatch]:
    where = f"{path}: " if path else ""
    if peer.kind != ours.kind:
        yield Mismatch(MismatchKind.TYPE, f"{where}its type is a {peer.kind}, here it is a {ours.kind}")
        return
    if peer.extensibility != ours.extensibility:
        yield Mismatch(
            MismatchKind.EXTENSIBILITY, f"{where}its type is @{peer.extensibility}, here it is @{ours.extensibility}"
        )
    if peer.kind == "enum":
        yield from _differences_of_literals(peer, ours, where)
        return
    theirs = {_label(each): each for each in peer.members}
    known = {_label(each): each for each in ours.members}
    for label in known:
        if label in theirs:
            yield from _differences_of_members(
                theirs[label], known[label], f"{path}.{label}" if path else label, peer_writes
            )
    if peer.extensibility != "final" and ours.extensibility != "final":
        return
    if lacking := [label for label in known if label not in theirs]:
        yield Mismatch(MismatchKind.TYPE, f"{where}its type has no member {', '.join(lacking[:5])}")
    if extra := [label for label in theirs if label not in known]:
        yield Mismatch(MismatchKind.TYPE, f"{where}its type has a member {', '.join(extra[:5])} that is not known here")
    if not lacking and not extra and list(theirs) != list(known):
        yield Mismatch(MismatchKind.TYPE, f"{where}its members are in the order {', '.join(list(theirs)[:8])}")


def _differences_of_members(
    peer: OutlineMember, ours: OutlineMember, path: str, peer_writes: bool
) -> Iterator[Mismatch]:
    if peer.is_key != ours.is_key:
        yield Mismatch(MismatchKind.KEY, f"{path} is {_key(peer)} in its type, here it is {_key(ours)}")
    if peer.is_optional != ours.is_optional:
        yield Mismatch(MismatchKind.TYPE, f"{path} is {_optional(peer)} in its type, here it is {_optional(ours)}")
    if peer.number != ours.number:
        yield Mismatch(MismatchKind.TYPE, f"{path} has the id {peer.number} in its type, here {ours.number}")
    if peer.type.form != ours.type.form:
        yield Mismatch(MismatchKind.TYPE, f"{path} is {shown(peer.type)} in its type, here {shown(ours.type)}")
    elif peer.type.inside is not None and ours.type.inside is not None:
        yield from _differences(peer.type.inside, ours.type.inside, path, peer_writes)
    written, read = (peer.type.bounds, ours.type.bounds) if peer_writes else (ours.type.bounds, peer.type.bounds)
    if peer.type.form == ours.type.form and any(_is_wider(*each) for each in zip(written, read, strict=False)):
        yield Mismatch(MismatchKind.BOUND, f"{path} is {shown(peer.type)} in its type, here {shown(ours.type)}")


def _differences_of_literals(peer: TypeOutline, ours: TypeOutline, where: str) -> Iterator[Mismatch]:
    if peer.literals != ours.literals:
        theirs, known = (", ".join(f"{name}={value}" for name, value in each.literals[:8]) for each in (peer, ours))
        yield Mismatch(MismatchKind.TYPE, f"{where}its literals are {theirs}, here {known}")


def shown(each: Bounded) -> str:
    """Return a member's type as text, including its bounds."""
    form = each.form.replace("struct", each.inside.name, 1) if each.inside and each.inside.name else each.form
    bounds = [bound for bound in each.bounds if bound]
    return f"{form} bounded by {', '.join(map(str, bounds))}" if bounds else form


def _is_wider(written: int, read: int) -> bool:
    """Return whether a writer's bound is wider than a reader's; 0 is unbounded."""
    return read != 0 and (written == 0 or written > read)


def _key(member: OutlineMember) -> str:
    return "a key" if member.is_key else "no key"


def _label(member: OutlineMember) -> str:
    return member.name or f"#{member.number}"


def _optional(member: OutlineMember) -> str:
    return "optional" if member.is_optional else "not optional"


def _word(names: tuple[str, ...], kind: int) -> str:
    return names[kind] if 0 <= kind < len(names) else str(kind)


def _duration(span_ns: int) -> str:
    return "an infinite duration" if span_ns >= FOREVER else f"{span_ns} ns"


def _partitions(policies: EndpointPolicies) -> str:
    names = [each.decode(errors="backslashreplace") for each in policies.partitions[:5]]
    return ", ".join(map(repr, names)) or "none (the default one)"


def _is_pattern(name: bytes) -> bool:
    return any(each in name for each in (b"*", b"?", b"["))
