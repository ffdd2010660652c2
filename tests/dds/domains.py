"""DDS domains for tests: each test has one of its own, whoever else tests on this machine at the same time.

Two services that host the same queue in the same domain both give their samples to its consumers. So a domain is
claimed with a locked file, which the started services inherit: it is free again when the last of them is gone.
"""

from __future__ import annotations

from typing import Final

from qsctl.config.qos_libraries.transport_properties import DOMAIN_ID_MAX
from qsctl.testing._domains import ClaimedDomain
from qsctl.transport.dds.participant import _DOMAINS

_CLAIMS: Final[dict[int, ClaimedDomain]] = {}


def claim_domain() -> int:
    """A domain that no other process has; `release_domain` gives it back, as the end of the process does."""
    claimed = ClaimedDomain()
    _CLAIMS[claimed.domain_id] = claimed
    return claimed.domain_id


def release_domain(domain: int) -> None:
    """Give a domain back; a service that still runs in it keeps it.

    Nothing of this process may be left in it: what is would tell the next test of the services of this one.
    """
    _CLAIMS.pop(domain).close()
    assert domain not in open_domains(), f"a participant of this process is still in domain {domain}"


def open_domains() -> set[int]:
    """The domains that this process has a participant in."""
    return {domain_id % (DOMAIN_ID_MAX + 1) for domain_id in _DOMAINS._open}


def descriptors_of(domain: int) -> tuple[int, ...]:
    """What a process in the domain inherits, so that the domain is claimed as long as it runs."""
    return (_CLAIMS[domain].descriptor,) if domain in _CLAIMS else ()
