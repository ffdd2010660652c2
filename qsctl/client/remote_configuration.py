"""The request for another service's configuration, for a service that starts with -cfgRemote [QS 4.2].

Decides: which one is used: the first received, or the first with a given name; services discovered later are asked,
too.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from qsctl.client._dds_administrator import Administrator
from qsctl.config.files.document import BODY_LIMITS, parse_document
from qsctl.core.admin.command import GetConfiguration
from qsctl.core.admin.reply import ConfigurationText
from qsctl.declared.problems import InvalidFile
from qsctl.errors import NoAnswer
from qsctl.transport.dds.participant import DomainSettings

ASKED_AGAIN_AFTER_S: Final = 0.5
"""Time to wait for other services where the present ones returned nothing."""


class RemoteConfiguration(NamedTuple):
    """The configuration of another service: the name of its `<queuing_service>`, and the document."""

    name: str
    xml: str


def find_configuration(
    domain_id: int, name: str | None, timeout_s: float, settings: DomainSettings, own_name: str | None = None
) -> RemoteConfiguration | None:
    """Return the configuration of another service; None: none was received in time.

    Args:
        domain_id: the domain of remote administration.
        name: the name of the required `<queuing_service>`; None: any.
        timeout_s: the longest wait.
        settings: the settings to join the domain.
        own_name: the application name of the asking service; replies of a former run of it are ignored.
    """
    deadline = time.monotonic() + timeout_s
    administrator = Administrator(domain_id, max(ASKED_AGAIN_AFTER_S, min(timeout_s, 2.0)), settings)
    try:
        while True:
            try:
                replies = [each.message for each in administrator.request(GetConfiguration(), "*")]
            except NoAnswer:
                replies = []
            for reply in replies:
                body = reply.reply.body
                if isinstance(body, ConfigurationText) and reply.replying_service != own_name:
                    found = name_in(body.xml)
                    if found is not None and name in (None, found):
                        return RemoteConfiguration(found, body.xml)
            if time.monotonic() >= deadline:
                return None
            time.sleep(min(ASKED_AGAIN_AFTER_S, max(0.0, deadline - time.monotonic())))
    finally:
        administrator.leave()


def name_in(xml: str) -> str | None:
    """Return the name of the only service in a peer's document; None: it has none, or several."""
    try:
        root = parse_document(xml.encode(), "the configuration of another service", BODY_LIMITS).root
    except InvalidFile:
        return None
    services = root.findall("queuing_service")
    return services[0].get("name") if len(services) == 1 else None
