"""`dds:DOMAIN[?interface=…&peer=…&lease=…]`: the location of a service on DDS, as one argument.

Decides: the syntax. The default interface is loopback, as for a service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from qsctl.config.qos_libraries.transport_properties import DOMAIN_ID_MAX
from qsctl.errors import UsageError
from qsctl.identity import decimal_from_text
from qsctl.instant import parse_duration
from qsctl.transport.dds.participant import LEASE_DURATION_NS, LOOPBACK, DomainSettings

_REMEDY: Final = "Write dds:7, or dds:7?interface=eth0&peer=10.0.0.2."
_KEYS: Final = frozenset({"interface", "peer", "lease"})


def parse_dds_location(rest: str) -> tuple[int, DomainSettings]:
    """Return the domain and the settings for joining it, from the text after `dds:`.

    Raises:
        UsageError: the domain is not valid, or a parameter is unknown or given twice.
    """
    domain, _, query = rest.partition("?")
    domain_id = decimal_from_text(domain, DOMAIN_ID_MAX)
    if domain_id is None:
        raise UsageError(f"'dds:{rest}': {domain!r} is not a domain id", remedy=f"A domain id is 0 to {DOMAIN_ID_MAX}.")
    given: Mapping[str, list[str]] = parse_qs(query, keep_blank_values=True)
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise UsageError(f"'dds:{rest}': {unknown[0]!r} is not a parameter", remedy=_REMEDY)
    for key in ("interface", "lease"):
        if len(given.get(key, [])) > 1:
            raise UsageError(f"'dds:{rest}': {key} is given twice", remedy=_REMEDY)
    lease = given.get("lease", [""])[0]
    return domain_id, DomainSettings(
        interface=given.get("interface", [LOOPBACK])[0],
        peers=tuple(given.get("peer", ())),
        lease_duration_ns=parse_duration(lease) if lease else LEASE_DURATION_NS,
    )
