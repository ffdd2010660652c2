"""The configuration of a service that works, as the text of a file, and that text read again.

Decides: the placeholders for elements that a file must have and a running service may lack. A service is started with
one configuration and changed by commands: the text has the queues of now, and the rest as it was started.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from lxml import etree

from qsctl.config.configuration_xml import configuration_text
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import SessionSettings
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings

_STAND_IN: Final = "qsctl.stands_in_for_a_subscriber"
_SESSION: Final = "session"
"""The session of a shared subscriber that was created without one: in a file each has one [QS Table 3.12]."""


def live_text(configuration: ServiceConfiguration, hosted: ServiceSettings) -> str:
    """Return what a service is configured with now, as canonical XML.

    Args:
        configuration: what it was started with.
        hosted: its queues, subscribers and participants as they are now.
    """
    participants = tuple(
        replace(each, subscribers=tuple(map(_with_sessions, each.subscribers))) for each in hosted.participants
    )
    return configuration_text(replace(configuration, service=replace(hosted, participants=participants)))


def read_live_text(text: str) -> ServiceConfiguration:
    """Return the configuration that `live_text` wrote; a participant in it may have no subscriber.

    Raises:
        InvalidFile: the text is not such a configuration, or not one that this version reads; with every problem.
    """
    from qsctl.config.files.document import FILE_LIMITS, parse_document
    from qsctl.config.files.load_order import LITERAL_PREFIX, ConfigurationSource
    from qsctl.config.load import load_configuration

    root = parse_document(text.encode(), "the configuration of the service", FILE_LIMITS).root
    for participant in root.iter("domain_participant"):
        if participant.find("shared_subscriber") is None:
            # No file may contain a placeholder: it is read with one, which is then removed.
            around = etree.SubElement(participant, "shared_subscriber", name=_STAND_IN)
            etree.SubElement(etree.SubElement(around, "session_settings"), "session", name=_SESSION)
    configuration = load_configuration(
        [ConfigurationSource(LITERAL_PREFIX, literal=etree.tostring(root, encoding="unicode"))],
        configuration_name=None,
        variables={},
        environment={},
        working_directory=Path("/"),
        default_files=False,
        is_elsewhere=True,
    ).configuration
    participants = tuple(
        replace(each, subscribers=tuple(sub for sub in each.subscribers if sub.name != _STAND_IN))
        for each in configuration.service.participants
    )
    return replace(configuration, service=replace(configuration.service, participants=participants))


def _with_sessions(subscriber: SharedSubscriberSettings) -> SharedSubscriberSettings:
    sessions = subscriber.sessions or (SessionSettings(_SESSION),)
    queues = (each if each.session else replace(each, session=sessions[0].name) for each in subscriber.queues)
    return replace(subscriber, sessions=sessions, queues=tuple(queues))
