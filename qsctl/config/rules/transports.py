"""Rules about the DDS transports of participants: what this version and the installed library support [QS 9]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lxml import etree

from qsctl.config.qos_libraries.dds_library import has_tcp
from qsctl.config.qos_libraries.transport_properties import (
    DOMAIN_ID_MAX,
    LOAD_PLUGINS,
    Consequence,
    TransportMapping,
    map_transport,
    properties_of,
)
from qsctl.config.rules._place import ServicePlace
from qsctl.config.settings import ServiceConfiguration
from qsctl.declared.problems import Problem

NO_TCP: Final = "the installed Cyclone DDS is built without TCP, as the wheels of its Python package are"
TCP_REMEDY: Final = (
    "Give --without-tcp to serve over UDP alone, or install a Cyclone DDS library that is built with TCP (DDS_HAS_TCP)."
)
_OVER_UDP: Final = "Peers that use TCP alone do not reach it: give them UDPv4 in their <transport_builtin>."
_REMOVE: Final = "Remove the property, or run the service where it exists: no promise is left out silently."


class TransportParticipant(NamedTuple):
    """One of a service's participants: its place in the file, its domain and its QoS by tag."""

    step: str
    domain_id: int
    qos: Mapping[str, str]

    def mapping(self, *, without_tcp: bool) -> TransportMapping:
        """Return what Cyclone DDS has for its transport properties."""
        return map_transport(properties_of(self.qos.get("participant_qos", "")), without_tcp=without_tcp)


def participants_of(configuration: ServiceConfiguration) -> Iterator[TransportParticipant]:
    """Yield every participant that a running service would create."""
    for each in configuration.service.participants:
        yield TransportParticipant(f"domain_participant[{each.name}]", each.domain_id, each.qos)
    if configuration.administration is not None:
        yield TransportParticipant(
            "administration", configuration.administration.domain_id, configuration.administration.qos
        )
        replication = configuration.service_qos.configuration_replication
        if replication.replication.enabled:
            step = "service_qos/configuration_replication"
            yield TransportParticipant(step, configuration.administration.domain_id, replication.qos)
    if configuration.monitoring is not None and configuration.monitoring.enabled:
        yield TransportParticipant("monitoring", configuration.monitoring.domain_id, configuration.monitoring.qos)


def transports_are_served(place: ServicePlace) -> Iterator[Problem]:
    """Report properties without an equivalent: an error where they promise something, else a warning or a note."""
    for participant in participants_of(place.configuration):
        path = f"{place.path}/{participant.step}/participant_qos/property"
        mapping = participant.mapping(without_tcp=place.without_tcp)
        who = f"<{participant.step.partition('[')[0]}>"
        if mapping.tcp is not None and not has_tcp():
            message = f"{who} asks for TCP, and {NO_TCP}"
            yield place.unsupported(path, message, found=LOAD_PLUGINS, suggestion=TCP_REMEDY)
        if mapping.left_out:
            message = f"{who} asks for TCP, and is served over UDP alone (--without-tcp)"
            yield place.warning(path, message, found=", ".join(mapping.left_out), suggestion=_OVER_UDP)
        for unmet in mapping.refused:
            message = f"{who} requires what DDS does not support here: {unmet}"
            yield place.unsupported(path, message, found=unmet.name, suggestion=_REMOVE)
        for unmet in mapping.unmet:
            if unmet.consequence is Consequence.WARNED:
                yield place.warning(path, str(unmet), found=unmet.name)
        tuned = [unmet.name for unmet in mapping.unmet if unmet.consequence is Consequence.NOTED]
        if tuned:
            yield place.note(path, f"Cyclone DDS sets these by itself, their values are not used: {', '.join(tuned)}")


def initial_peers_are_given_to_serve(place: ServicePlace) -> Iterator[Problem]:
    """Find `<initial_peers>`, which are locators of another implementation; `qsctl serve --peer` names ours."""
    for participant in participants_of(place.configuration):
        text = participant.qos.get("participant_qos", "")
        peers = [each.text or "" for each in _find_all(text, "discovery/initial_peers/element")]
        if peers:
            yield place.warning(
                f"{place.path}/{participant.step}/participant_qos",
                "<initial_peers> is not used",
                found=", ".join(peers[:5]),
                suggestion="Name each with qsctl serve --peer ADDRESS.",
            )


def one_transport_a_domain(place: ServicePlace) -> Iterator[Problem]:
    """Check that participants of one domain have the same transport: a process has one transport in a domain."""
    first: dict[int, TransportParticipant] = {}
    for participant in participants_of(place.configuration):
        other = first.setdefault(participant.domain_id, participant)
        tcp, other_tcp = (each.mapping(without_tcp=place.without_tcp).tcp for each in (participant, other))
        if tcp != other_tcp:
            yield place.unsupported(
                f"{place.path}/{participant.step}/participant_qos/property",
                f"two participants of domain {participant.domain_id} ask for different transports",
                found=f"{other.step} and {participant.step}",
                suggestion="Give them the same dds.transport properties, or different domains.",
            )


def domains_have_ports(place: ServicePlace) -> Iterator[Problem]:
    """Check that the ports of a domain, which follow from its number, exist [RTPS 9.6.1]."""
    for participant in participants_of(place.configuration):
        if participant.domain_id > DOMAIN_ID_MAX:
            yield place.unsupported(
                f"{place.path}/{participant.step}/domain_id",
                f"the ports of domain {participant.domain_id} do not fit 16 bits here",
                found=str(participant.domain_id),
                allowed=f"0 to {DOMAIN_ID_MAX}",
            )


def _find_all(text: str, path: str) -> list[etree._Element]:
    return etree.fromstring(text).findall(path) if text.strip() else []
