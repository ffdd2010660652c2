"""The XML of a running service: bodies of CREATE and UPDATE [QS 5.4.1 and 5.4.7], and its current configuration."""

from __future__ import annotations

from typing import Final, TypeGuard

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import GetConfiguration
from qsctl.core.admin.reply import ConfigurationText, Reply, ReturnCode
from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import CommandRequest, Inbound
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.resource import ResourceIdentifier

_BODY: Final = "the command's body"


def is_configuration_request(message: Inbound) -> TypeGuard[CommandRequest]:
    """Return whether a message is a command for the whole configuration, which the engine does not handle."""
    return isinstance(message, CommandRequest) and isinstance(message.command, GetConfiguration)


class ConfigSnippets:
    """Parser of command bodies; omitted settings are inherited from the service's current configuration."""

    def __init__(self, configuration: ServiceConfiguration, hosted: HostedService) -> None:
        self._configuration = configuration
        self._hosted = hosted

    def queue(self, xml: str, subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        """Return the settings of a `<[dead_letter_]shared_reader_queue>` for this shared subscriber."""
        from qsctl.config.snippet import read_queue_snippet

        settings = self._hosted.subscribers().get(subscriber)
        return read_queue_snippet(
            _with_session(xml, settings),
            self._configuration,
            source=_BODY,
            subscriber=settings,
            participant=self._hosted.participants().get(subscriber.parent),
        )

    def configuration(self) -> Reply:
        """Return the reply to GET /configuration."""
        from qsctl.config.live import live_text

        return Reply(ReturnCode.OK, body=ConfigurationText(live_text(self._configuration, self._hosted.settings())))

    def subscriber(self, xml: str, participant: ResourceIdentifier) -> SharedSubscriberSettings:
        """Return settings of a `<shared_subscriber>` for this domain participant."""
        from qsctl.config.snippet import read_subscriber_snippet

        return read_subscriber_snippet(
            xml, self._configuration, source=_BODY, participant=self._hosted.participants().get(participant)
        )


def _with_session(xml: str, subscriber: SharedSubscriberSettings | None) -> str:
    """Return the body, with the subscriber's first session added if the body names none."""
    from lxml import etree

    from qsctl.config.files.document import BODY_LIMITS, parse_document

    if subscriber is None or not subscriber.sessions:
        return xml
    root = parse_document(xml.encode(), _BODY, BODY_LIMITS).root
    if root.get("session") is not None:
        return xml
    root.set("session", subscriber.sessions[0].name)
    return etree.tostring(root, encoding="unicode")
