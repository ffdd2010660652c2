"""The DDS domains of a running service, from its configuration [QS 3.3.3 to 3.3.6 and 9].

Decides: which domains are entered, with which interface and transport. Administration, monitoring and the distributed
logger are off unless the configuration or the command line turns them on.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qsctl.config.qos_libraries.dds_library import has_tcp
from qsctl.config.qos_libraries.transport_properties import map_transport, properties_of
from qsctl.config.rules.transports import NO_TCP, TCP_REMEDY
from qsctl.config.settings import ServiceConfiguration
from qsctl.errors import Refused
from qsctl.transport.dds.participant import LOOPBACK, DomainSettings
from qsctl.transport.dds.serving.service_transport import DomainPlace, ServicePlaces

_PARTICIPANT_QOS = "participant_qos"


def places_of_configuration(
    configuration: ServiceConfiguration,
    settings: DomainSettings,
    administration_domain_id: int | None = None,
    *,
    without_tcp: bool = False,
    cluster_key_file: Path | None = None,
    accepts_unsigned: bool = False,
) -> ServicePlaces:
    """Return the domains of a service.

    Args:
        configuration: its configuration.
        settings: interface, peers and lease for every domain.
        administration_domain_id: turns administration on in this domain also where the file disables it [QS Table 4.1].
        without_tcp: whether participants configured for plain TCP use UDP only.
        cluster_key_file: the keys that sign the replication messages between members of a cluster.
        accepts_unsigned: whether replication messages without a signature are accepted too.

    Raises:
        Refused: a participant requires DDS Security, TLS or a transport that is not available here, or two participants
            of one domain require different transports.
    """

    def own(qos: Mapping[str, str], where: str) -> DomainSettings:
        return _settings(settings, qos, where, without_tcp=without_tcp)

    participants = {
        each.name: DomainPlace(each.domain_id, own(each.qos, f"<domain_participant name={each.name!r}>"))
        for each in configuration.service.participants
    }
    administration = configuration.administration
    admin_place: DomainPlace | None = None
    if administration is not None or administration_domain_id is not None:
        qos = administration.qos if administration is not None else {}
        domain_id = administration_domain_id
        if domain_id is None:
            assert administration is not None
            domain_id = administration.domain_id
        admin_place = DomainPlace(domain_id, own(qos, "<administration>"))
    key_file = administration.key_file if administration is not None else None
    monitoring = configuration.monitoring
    monitoring_place = (
        DomainPlace(monitoring.domain_id, own(monitoring.qos, "<monitoring>"))
        if monitoring is not None and monitoring.enabled
        else None
    )
    replication = configuration.service_qos.configuration_replication
    replication_place: DomainPlace | None = None
    if replication.replication.enabled and admin_place is not None:
        replication_place = DomainPlace(admin_place.domain_id, own(replication.qos, "<configuration_replication>"))
    places = ServicePlaces(
        participants,
        admin_place,
        monitoring_place,
        admin_place if configuration.distributed_logger.enabled else None,
        configuration=replication_place,
        key_file=Path.cwd() / key_file if key_file is not None else None,
        cluster_key_file=Path.cwd() / cluster_key_file if cluster_key_file is not None else None,
        accepts_unsigned=accepts_unsigned,
        run=secrets.token_hex(8),
    )
    _check_one_transport_a_domain(places)
    return places


def warnings_for(settings: DomainSettings, places: ServicePlaces, *, is_member: bool = False) -> list[str]:
    """Return warnings for the operator about the service's reachability and security.

    Args:
        settings: the service's interface.
        places: the service's domains, with its keys.
        is_member: whether it is a member of a cluster.
    """
    warnings: list[str] = []
    if settings.interface != LOOPBACK:
        can = "read, write and administer" if places.key_file is None else "read and write"
        warnings.append(
            f"DDS traffic on interface {settings.interface} is neither authenticated nor encrypted: "
            f"every peer that reaches the interface can {can} the queues"
        )
    if is_member and (places.cluster_key_file is None or places.accepts_unsigned):
        lack = "are accepted without a signature" if places.accepts_unsigned else "are not signed"
        remedy = "leave --accept-unsigned out" if places.accepts_unsigned else "give all members a --cluster-key"
        warnings.append(
            f"replication messages between the members of the cluster {lack}: every peer that reaches their domain can "
            "write in a member's name, end masterships, become the master, lose accepted samples and deliver invented "
            "ones; "
            f"{remedy}"
        )
    return warnings


def _settings(base: DomainSettings, qos: Mapping[str, str], where: str, *, without_tcp: bool) -> DomainSettings:
    mapping = map_transport(properties_of(qos.get(_PARTICIPANT_QOS, "")), without_tcp=without_tcp)
    if mapping.refused:
        raise Refused(
            f"{where} requires what DDS does not support here: {'; '.join(map(str, mapping.refused))}",
            remedy="Remove these properties, or run the service where they exist; nothing is left out silently.",
        )
    if mapping.tcp is not None and not has_tcp():
        raise Refused(f"{where} asks for TCP, and {NO_TCP}", remedy=TCP_REMEDY)
    return replace(base, tcp=mapping.tcp) if mapping.tcp is not None else base


def _check_one_transport_a_domain(places: ServicePlaces) -> None:
    seen: dict[int, DomainSettings] = {}
    everybody = [*places.participants.values(), places.administration, places.configuration, places.monitoring]
    for place in everybody:
        if place is None:
            continue
        if seen.setdefault(place.domain_id, place.settings) != place.settings:
            raise Refused(
                f"two participants of domain {place.domain_id} ask for different transports",
                remedy="Give them the same dds.transport properties, or different domains.",
            )
