"""The engine and file settings of an embedded service, from a configuration or by default."""

from __future__ import annotations

from typing import Final

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.config.live import live_text, read_live_text
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.reply import ConfigurationText, Reply, ReturnCode
from qsctl.core.queue.settings import PersistenceKind, SessionSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.service.run.named_configuration import Configuration

DEFAULT_SETTINGS: Final = ServiceSettings(
    "qsctl",
    (
        DomainParticipantSettings(
            "DomainParticipant", 0, (SharedSubscriberSettings("SharedSubscriber", (SessionSettings("Session"),)),)
        ),
    ),
)
"""The configuration of a state directory when none is given: one shared subscriber without queues in domain 0."""

DEFAULT_FILESYSTEM: Final = FilesystemSettings(synchronization=Synchronization.NORMAL)
"""Synced as each command ends: a command that has ended survives a loss of power."""


def settings_of(given: Configuration | None) -> tuple[ServiceSettings, FilesystemSettings, bool]:
    """Return the engine's settings, the file settings, and whether the configuration outlives SHUTDOWN."""
    if given is None:
        return DEFAULT_SETTINGS, DEFAULT_FILESYSTEM, False
    if isinstance(given, ServiceSettings):
        return given, DEFAULT_FILESYSTEM, False
    persistence = given.service_qos.persistence
    return given.service, given.filesystem, persistence.kind is PersistenceKind.PERSISTENT and persistence.restore


def configuration_reply(stored: str, settings: ServiceSettings) -> Reply:
    """Return the reply to GET /configuration.

    Args:
        stored: the text of the instance's first configuration; empty: it had none.
        settings: the current settings.
    """
    began_with = read_live_text(stored) if stored else ServiceConfiguration(settings.application_name, settings)
    return Reply(ReturnCode.OK, body=ConfigurationText(live_text(began_with, settings)))
