"""The configuration of a running service, for one that starts without its own: -cfgRemote [QS 4.2].

Decides: which is taken: the first that comes, or the first of a name; services that come later are asked, too.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from qsctl.client._dds_administrator import Administrator
from qsctl.config.files.document import BODY_LIMITS, parse_document
from qsctl.config.problems import ConfigError
from qsctl.core.admin.command import GetConfiguration
from qsctl.core.admin.reply import ConfigurationText
from qsctl.errors import NoAnswer
from qsctl.transport.dds.participant import DomainSettings

ASKED_AGAIN_AFTER_S: Final = 0.5
"""Time to wait for other services where the present ones returned nothing."""


class RemoteConfiguration(NamedTuple):
    """A configuration of another service: the name of its `<queuing_service>`, and the document."""

    name: str
    xml: str


def find_configuration(
    domain_id: int, name: str | None, timeout_s: float, settings: DomainSettings, own_name: str | None = None
) -> RemoteConfiguration | None:
    """Return a configuration of another service; None: none came in time.

    Args:
        domain_id: of remote administration.
        name: of the `<queuing_service>` that is wanted; None: any.
        timeout_s: how long to wait.
        settings: of the domain.
        own_name: the application name of the service that asks: a former run of it does not count.
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
    """Return the name of the one service in a document of a peer; None: it holds none, or more than is read."""
    try:
        root = parse_document(xml.encode(), "the configuration of another service", BODY_LIMITS).root
    except ConfigError:
        return None
    services = root.findall("queuing_service")
    return services[0].get("name") if len(services) == 1 else None
