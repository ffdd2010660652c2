"""The body of a CREATE command: one queue or one shared subscriber, inheriting from the running service.

A body [QS 5.4.1, 5.4.7 and 5.5] is XML, or `str://"<shared_reader_queue …>"` with its quotes escaped; `file://…` is
refused, since a body comes from a peer. A body is at most 1 MB and 64 levels deep, has no document type declaration,
and environment variables are never expanded in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from lxml import etree
from lxml.etree import _Element

from qsctl.config._build import BuildContext, ServiceBuilder, generated_name
from qsctl.config._reader import ServiceReading
from qsctl.config.files.document import BODY_LIMITS, Document, parse_document, text_of
from qsctl.config.files.load_order import FILE_PREFIX, LITERAL_PREFIX, unquote_literal
from qsctl.config.files.schema import check_document
from qsctl.config.files.variables import refuse_variables, without_consequences
from qsctl.config.rules import TREE_RULES, queue_problems
from qsctl.config.settings import MonitoringPublicationSettings, ServiceConfiguration
from qsctl.config.tables.containers import SUBSCRIBER
from qsctl.config.tables.queue import QUEUE_FORMS
from qsctl.config.tables.service import SERVICE
from qsctl.config.tables.shared import ENTITY_MONITORING, REPLICATION, STATISTICS
from qsctl.config.writer import queue_text, write
from qsctl.core.queue.settings import SampleBufferSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.declared.problems import InvalidFile, Problem, error_at, has_errors, refusal

QUEUE_ROOTS: Final = tuple(QUEUE_FORMS)
SUBSCRIBER_ROOTS: Final = (SUBSCRIBER.tag,)


def read_queue_snippet(
    text: str,
    inherit: ServiceSettings | ServiceConfiguration,
    *,
    source: str,
    subscriber: SharedSubscriberSettings | None = None,
    participant: DomainParticipantSettings | None = None,
) -> SharedReaderQueueSettings:
    """Return the settings of the queue that a CREATE body describes.

    Args:
        text: the body.
        inherit: the running service; what the body leaves out comes from it.
        source: what problems call the body.
        subscriber: the shared subscriber that the queue goes into; its sessions and dead-letter queue are looked up.
        participant: the domain participant around it; its sample buffers are the queue's.

    Raises:
        InvalidFile: with every problem, if one is an error.
    """
    document = _parse(text, source, QUEUE_ROOTS)
    builder = ServiceBuilder(_service_around(inherit), _context(inherit))
    buffer = _sample_buffer(inherit, participant)
    queue = builder.queue(document.root, f"/shared_subscriber[{subscriber.name if subscriber else ''}]", buffer)
    libraries = builder.context.libraries
    problems = [*builder.reading.problems, *libraries.problems, *_missing_references(queue, subscriber, source)]
    problems.extend(
        queue_problems([queue], _configuration(inherit), builder.reading, document.root, subscriber, participant)
    )
    _raise_errors(problems)
    return queue


def read_subscriber_snippet(
    text: str,
    inherit: ServiceSettings | ServiceConfiguration,
    *,
    source: str,
    participant: DomainParticipantSettings | None = None,
) -> SharedSubscriberSettings:
    """Return the settings of the shared subscriber that a CREATE body describes, with its queues.

    Arguments and errors as for `read_queue_snippet`.
    """
    document = _parse(text, source, SUBSCRIBER_ROOTS)
    builder = ServiceBuilder(_service_around(inherit), _context(inherit))
    subscriber = builder.subscriber(document.root, "", _sample_buffer(inherit, participant))
    problems = [*builder.reading.problems, *builder.context.libraries.problems]
    problems.extend(
        queue_problems(
            list(subscriber.queues), _configuration(inherit), builder.reading, document.root, subscriber, participant
        )
    )
    _raise_errors(problems)
    return subscriber


def read_description(text: str, roots: tuple[str, ...], *, source: str, name: str = "", around: str = "") -> _Element:
    """Return the element of a body, with a name, for a service that reads it with its own profiles and settings.

    Args:
        text: the body.
        roots: `QUEUE_ROOTS` or `SUBSCRIBER_ROOTS`.
        source: what problems call the body.
        name: the name of what is created, if the body has none.
        around: the name of the shared subscriber that a queue goes into.

    Raises:
        InvalidFile: the body is not well-formed or not as the schema has it; with every problem.
    """
    element = _parse(text, source, roots).root
    if not (element.get("name") or "").strip():
        topic = element.find("topic_name")
        generated = generated_name("" if topic is None else text_of(topic), f"/shared_subscriber[{around}]")
        element.set("name", name or generated)
    return element


def _parse(text: str, source: str, roots: tuple[str, ...]) -> Document:
    document = parse_document(_body(text, source), source, BODY_LIMITS)
    problems = refuse_variables(document.root)
    problems.extend(without_consequences(check_document(document, roots), problems))
    if document.root.tag in roots:
        problems.extend(problem for rule in TREE_RULES for problem in rule(document.root))
    _raise_errors(problems)
    return document


def _body(text: str, source: str) -> bytes:
    if len(text) > 2 * BODY_LIMITS.size_bytes:
        allowed = f"at most {BODY_LIMITS.size_bytes} bytes"
        raise refusal(source, "the body is too large", found=text[:1000], allowed=allowed)
    stripped = text.strip()
    if stripped.startswith(LITERAL_PREFIX):
        return unquote_literal(stripped).encode("utf-8", "replace")
    if stripped.startswith(FILE_PREFIX):
        allowed = 'the XML itself, or str://"…"'
        raise refusal(source, "a command cannot name a file to read", found=stripped, allowed=allowed)
    return stripped.encode("utf-8", "replace")


def _raise_errors(problems: list[Problem]) -> None:
    if has_errors(problems):
        raise InvalidFile(list(dict.fromkeys(problems)), "the configuration")


def _configuration(inherit: ServiceSettings | ServiceConfiguration) -> ServiceConfiguration:
    """Return a whole configuration around service settings: monitoring counts as on where queues inherit that it is."""
    if isinstance(inherit, ServiceConfiguration):
        return inherit
    monitoring = MonitoringPublicationSettings(0) if inherit.monitoring.enabled else None
    return ServiceConfiguration(inherit.application_name, inherit, monitoring=monitoring)


def _context(inherit: ServiceSettings | ServiceConfiguration) -> BuildContext:
    configuration = _configuration(inherit)
    libraries = configuration.qos_libraries.without_findings()  # what an earlier body had is no problem of this one
    return BuildContext(configuration.service.application_name, libraries=libraries, types=configuration.types)


def _service_around(inherit: ServiceSettings | ServiceConfiguration) -> _Element:
    """Return the service's inheritable settings as the element around a queue in a file."""
    service = inherit.service if isinstance(inherit, ServiceConfiguration) else inherit
    around = etree.Element(SERVICE.tag, name=service.application_name)
    around.append(write(STATISTICS, service.statistics))
    qos = etree.SubElement(around, "service_qos")
    qos.append(write(replace(REPLICATION, tag="shared_reader_queue_replication"), service.replication))
    around.append(write(replace(ENTITY_MONITORING, tag="monitoring"), service.monitoring))
    return around


def _sample_buffer(
    inherit: ServiceSettings | ServiceConfiguration, participant: DomainParticipantSettings | None
) -> SampleBufferSettings:
    service = inherit.service if isinstance(inherit, ServiceConfiguration) else inherit
    if participant is None and len(service.participants) == 1:
        participant = service.participants[0]
    return participant.sample_buffer if participant else SampleBufferSettings()


def check_queue(
    queue: SharedReaderQueueSettings,
    inherit: ServiceSettings | ServiceConfiguration,
    *,
    source: str,
    subscriber: SharedSubscriberSettings | None = None,
    participant: DomainParticipantSettings | None = None,
) -> None:
    """Check a queue that no body describes by the rules for those that one does.

    Arguments as for `read_queue_snippet`; `source` is what describes the queue.

    Raises:
        InvalidFile: with every problem, if one is an error.
    """
    element = parse_document(queue_text(queue).encode(), source, BODY_LIMITS).root
    configuration = _configuration(inherit)
    _raise_errors(queue_problems([queue], configuration, ServiceReading(), element, subscriber, participant))


def _missing_references(
    queue: SharedReaderQueueSettings, subscriber: SharedSubscriberSettings | None, source: str
) -> list[Problem]:
    if subscriber is None:
        return []
    problems = []
    sessions = [session.name for session in subscriber.sessions]
    if queue.session not in sessions:
        message = f"the shared subscriber {subscriber.name} has no such session"
        allowed = ", ".join(sessions) or "no session is defined"
        problems.append(error_at(source, 0, message, found=f'session="{queue.session}"', allowed=allowed))
    dead_letters = [each.name for each in subscriber.queues if each.is_dead_letter]
    if queue.dead_letter_queue and queue.dead_letter_queue not in dead_letters:
        message = f"the shared subscriber {subscriber.name} has no such dead-letter queue"
        found = f'dead_letter_queue="{queue.dead_letter_queue}"'
        allowed = ", ".join(dead_letters) or "there is none"
        problems.append(error_at(source, 0, message, found=found, allowed=allowed))
    return problems
