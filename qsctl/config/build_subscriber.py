"""A `<shared_subscriber>` with its sessions to settings, inside the service that its queues inherit from.

Manual, Tables 3.11 to 3.13. The same builder reads subscribers of files and those of CREATE commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lxml.etree import _Element

from qsctl.config import defaults, values
from qsctl.config.build_queue import QUEUE_TAGS, Inherited, build_qos, build_queue
from qsctl.config.inheritance import Layer, Reading, Scope
from qsctl.config.qos import QosLibraries
from qsctl.config.types import TypeLibrary
from qsctl.core.queue.settings import SampleBufferSettings, SessionSettings, SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings


@dataclass(frozen=True)
class BuildContext:
    """What a service is built with beside its element; the last two stand in for what it says of its files."""

    application_name: str
    domain_id_base: int = 0
    working_directory: Path = Path()
    libraries: QosLibraries = field(default_factory=QosLibraries)
    types: TypeLibrary = field(default_factory=TypeLibrary)
    substituted: Mapping[_Element, str] = field(default_factory=dict)
    storage_directory: Path | None = None
    file_prefix: str | None = None


class SubscriberBuilder:
    """Builds subscribers and queues inside one `<queuing_service>` element."""

    def __init__(self, element: _Element, context: BuildContext) -> None:
        name = " ".join((element.get("name") or "").split())
        self.name = name
        self.context = context
        self.libraries = context.libraries
        self.reading = Reading(substituted=dict(context.substituted))
        self.scope = Scope(self.reading, f"queuing_service[{name}]", (Layer(element),))
        self.reading.elements[self.scope.path] = element
        general = self.scope.inside("monitoring")
        self.general_monitoring = general.present and general.value(
            "enabled", values.boolean, defaults.MONITORING_ENABLED
        )

    def protocol(self) -> Scope:
        """`<replication_settings>` of the service."""
        return self.scope.inside("replication_settings").labelled("<replication_settings> of the service")

    def queue_replication_scope(self) -> Scope:
        """`<shared_reader_queue_replication>` of the service QoS."""
        return self.scope.inside("service_qos").inside("shared_reader_queue_replication")

    def lone_queue(
        self, element: _Element, sample_buffer: SampleBufferSettings, subscriber_name: str
    ) -> SharedReaderQueueSettings:
        """A queue that stands alone, as in a CREATE body."""
        return build_queue(element, self.inherited(None, sample_buffer), f"/shared_subscriber[{subscriber_name}]")

    def subscriber(
        self, element: _Element, parent_path: str, sample_buffer: SampleBufferSettings
    ) -> SharedSubscriberSettings:
        """A `<shared_subscriber>` with its sessions and queues."""
        name = " ".join((element.get("name") or "").split())
        scope = Scope(self.reading, f"{parent_path}/shared_subscriber[{name}]", (Layer(element),))
        self.reading.elements[scope.path] = element
        sessions = element.findall("session_settings/session")
        by_session = {each.get("name", "").strip(): self.inherited(each, sample_buffer) for each in sessions}
        by_service = self.inherited(None, sample_buffer)
        queues = [child for child in element if child.tag in QUEUE_TAGS]
        return SharedSubscriberSettings(
            name=name,
            sessions=tuple(self._session(each, scope.path) for each in sessions),
            queues=tuple(
                build_queue(queue, by_session.get(queue.get("session", "").strip(), by_service), scope.path)
                for queue in queues
            ),
            qos=build_qos(scope, ("publisher_qos", "subscriber_qos"), self.libraries),
        )

    def _session(self, element: _Element, parent_path: str) -> SessionSettings:
        name = " ".join((element.get("name") or "").split())
        scope = Scope(self.reading, f"{parent_path}/session_settings/session[{name}]", (Layer(element),))
        self.reading.elements[scope.path] = element
        thread = scope.inside("thread")
        # The example of Table 3.13 has <dequeue_period> inside <thread>; both places are read, the session's own first.
        period = scope.then(thread).length_of_time("dequeue_period", defaults.DEQUEUE_PERIOD)
        return SessionSettings(
            name=name,
            dequeue_period_ns=period,
            thread_mask=thread.value("mask", values.word, defaults.THREAD_MASK),
            thread_priority=thread.value("priority", values.word, defaults.THREAD_PRIORITY),
            thread_stack_size=thread.value("stack_size", values.word, defaults.THREAD_STACK_SIZE),
        )

    def inherited(self, session: _Element | None, sample_buffer: SampleBufferSettings) -> Inherited:
        """What a queue of this session inherits: from the session first, then from the service."""
        layers = (Layer(session, f"session {session.get('name')}"),) if session is not None else ()
        from_session = Scope(self.reading, "", layers)
        service = self.scope
        return Inherited(
            self.reading,
            self.libraries,
            monitoring=from_session.inside("monitoring").then(
                service.inside("monitoring").labelled("<monitoring> of the service")
            ),
            statistics=from_session.inside("statistics").then(
                service.inside("statistics").labelled("<statistics> of the service")
            ),
            replication=from_session.inside("replication").then(
                self.queue_replication_scope().labelled("<shared_reader_queue_replication> of the service")
            ),
            replication_settings=self.protocol(),
            general_monitoring=self.general_monitoring,
            sample_buffer=sample_buffer,
        )
