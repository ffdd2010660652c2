"""DDS domains for tests: each test has one of its own, whoever else tests on this machine at the same time.

Two services that host the same queue in the same domain both give their samples to its consumers. So a domain is
claimed with a locked file, which the started services inherit: it is free again when the last of them is gone.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import Final

from qsctl.config.qos_libraries.transport_properties import DOMAIN_ID_MAX
from qsctl.transport.dds.participant import _DOMAINS

DOMAIN_IDS: Final = range(1, 101)
"""Their ports lie below those that the operating system gives to whoever asks for any."""

_CLAIMS: Final[dict[int, int]] = {}


def claim_domain() -> int:
    """A domain that nobody else has; `release_domain` gives it back, as the end of the process does."""
    directory = Path(tempfile.gettempdir()) / f"qsctl-test-domains-{os.getuid()}"
    directory.mkdir(exist_ok=True)
    for domain in DOMAIN_IDS:
        if domain in _CLAIMS:
            continue
        descriptor = os.open(directory / str(domain), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        _CLAIMS[domain] = descriptor
        return domain
    raise AssertionError(f"each of the {len(DOMAIN_IDS)} domains is in use: do orphaned services run?")


def release_domain(domain: int) -> None:
    """Give a domain back; a service that still runs in it keeps it.

    Nothing of this process may be left in it: what is would tell the next test of the services of this one.
    """
    os.close(_CLAIMS.pop(domain))
    assert domain not in open_domains(), f"a participant of this process is still in domain {domain}"


def open_domains() -> set[int]:
    """The domains that this process has a participant in."""
    return {domain_id % (DOMAIN_ID_MAX + 1) for domain_id in _DOMAINS._open}


def descriptors_of(domain: int) -> tuple[int, ...]:
    """What a process in the domain inherits, so that the domain is claimed as long as it runs."""
    return (_CLAIMS[domain],) if domain in _CLAIMS else ()
