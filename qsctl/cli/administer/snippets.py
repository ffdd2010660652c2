"""The inputs of administration commands (XML, selectors), and the settings that a new queue inherits from its place."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.administer.queue_options import QueueOptions, check_name
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.client.connection import Connection
    from qsctl.core.messages import CommandReply
    from qsctl.core.queue.settings import SharedReaderQueueSettings
    from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
    from qsctl.resource import ResourceIdentifier

MAX_SNIPPET_CHARACTERS: Final = 2_000_000
DEFAULT_SESSION: Final = "Session"

FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="XML_FILE", help="XML snippet with the configuration; -: standard input."),
]
XmlOption = Annotated[str | None, typer.Option(metavar="XML", help="Text of an XML snippet with the configuration.")]


@dataclass(frozen=True, slots=True)
class Snippet:
    """XML given by the user, and its source as named in error messages."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class SnippetPlace:
    """The place where an object is created: the service, and its containers if their settings are known here."""

    service: ServiceSettings
    participant: DomainParticipantSettings | None = None
    subscriber: SharedSubscriberSettings | None = None


def read_snippet(file: Path | None, xml: str | None) -> Snippet | None:
    """Return the XML of the options; None if there is none.

    Raises:
        UsageError: it was given both as a file and as a text.
        NotFound, InvalidInput: the file does not exist, or cannot be read.
    """
    if file is not None and xml is not None:
        raise UsageError("--file and --xml are both given", remedy="Give one of them.")
    if xml is not None:
        return Snippet(xml, "--xml")
    if file is None:
        return None
    if is_standard_input(file):
        with reading(STANDARD_INPUT):
            return Snippet(sys.stdin.read(MAX_SNIPPET_CHARACTERS + 1), STANDARD_INPUT)
    with reading(file), file.open(encoding="utf-8") as stream:
        return Snippet(stream.read(MAX_SNIPPET_CHARACTERS + 1), str(file))


def surroundings(connection: Connection, container: ResourceIdentifier) -> SnippetPlace:
    """Return the known settings of the containers that a resource identifier names.

    A remote service resolves omitted settings by itself; here the defaults of [QS 3.3] are used.
    """
    from qsctl.client.connection import KnowsSettings
    from qsctl.core.settings import ServiceSettings

    if not isinstance(connection, KnowsSettings):
        return SnippetPlace(ServiceSettings(""))
    service = connection.settings
    names = [name for _, name in container.names]
    participant = next((each for each in service.participants if names[:1] == [each.name]), None)
    held = participant.subscribers if participant else ()
    subscriber = next((each for each in held if names[1:2] == [each.name]), None)
    return SnippetPlace(service, participant, subscriber)


def check_queue(name: str, options: QueueOptions, snippet: Snippet | None) -> None:
    """Check, before the service is opened, that the options or the XML can describe a queue.

    Raises:
        UsageError: options beside XML, no name, or options that contradict each other.
    """
    if snippet is None:
        options.settings(name)
    elif options.given():
        raise UsageError(
            f"{', '.join(options.given())} cannot be combined with XML",
            remedy="Write it in the XML, or use options only.",
        )


def queue_of(
    name: str, options: QueueOptions, snippet: Snippet | None, around: SnippetPlace
) -> SharedReaderQueueSettings:
    """Return a queue's settings from options or XML, with those that it inherits.

    Raises:
        UsageError: the name differs from the one in the XML.
        InvalidInput: the XML or what the options describe is wrong; every problem with its line.
    """
    if snippet is None:
        settings = options.settings(name)
        sessions = around.subscriber.sessions if around.subscriber else ()
        settings = replace(
            settings,
            session=settings.session or (sessions[0].name if sessions else ""),
            sample_buffer=around.participant.sample_buffer if around.participant else settings.sample_buffer,
            statistics=around.service.statistics,
            monitoring=around.service.monitoring,
            replication=around.service.replication,
        )
        if around.subscriber is not None:  # the settings are known here: what answers by itself judges by itself
            from qsctl.config.snippet import check_queue as check_queue_settings

            check_queue_settings(
                settings,
                around.service,
                source="the options",
                subscriber=around.subscriber,
                participant=around.participant,
            )
        return settings
    settings = queue_of_xml(snippet, around)
    if name and settings.name != name:
        _check_nameless(name, snippet, "queue")
        settings = replace(settings, name=name)
    check_name(settings.name, "queue")
    return settings


def subscriber_of(name: str, session: str, snippet: Snippet | None, around: SnippetPlace) -> SharedSubscriberSettings:
    """Return a shared subscriber's settings: those of the XML, else without queues and with one session.

    Raises:
        UsageError: the name differs from the one in the XML.
        InvalidInput: the XML is wrong; every problem with its line.
    """
    if snippet is None:
        from qsctl.core.queue.settings import SessionSettings
        from qsctl.core.settings import SharedSubscriberSettings

        return SharedSubscriberSettings(name, (SessionSettings(session or DEFAULT_SESSION),))
    settings = subscriber_of_xml(snippet, around)
    if name and settings.name != name:
        _check_nameless(name, snippet, "shared subscriber")
        settings = replace(settings, name=name)
    check_name(settings.name, "shared subscriber")
    return settings


def queue_of_xml(snippet: Snippet, around: SnippetPlace) -> SharedReaderQueueSettings:
    """Return the settings of a `<shared_reader_queue>` or `<dead_letter_shared_reader_queue>`.

    Raises:
        InvalidInput: the XML is wrong; every problem with its line.
    """
    from qsctl.config.snippet import read_queue_snippet

    return read_queue_snippet(
        snippet.text,
        around.service,
        source=snippet.source,
        subscriber=around.subscriber,
        participant=around.participant,
    )


def subscriber_of_xml(snippet: Snippet, around: SnippetPlace) -> SharedSubscriberSettings:
    """Return the settings of a `<shared_subscriber>`, its queues included.

    Raises:
        InvalidInput: the XML is wrong; every problem with its line.
    """
    from qsctl.config.snippet import read_subscriber_snippet

    return read_subscriber_snippet(snippet.text, around.service, source=snippet.source, participant=around.participant)


def created_as_described(
    administration: Administration,
    container: ResourceIdentifier,
    name: str,
    snippet: Snippet | None,
    *,
    idempotent: bool,
) -> tuple[ResourceIdentifier, list[CommandReply]] | None:
    """Send XML to a service that reads it itself, and return what was created, and the replies; None: it cannot.

    The service has the profiles, the types and the settings that the XML refers to and inherits.

    Raises:
        UsageError: the name differs from the one in the XML.
        InvalidInput: the XML is wrong; every problem with its line.
    """
    from lxml import etree

    from qsctl.client.connection import SendsBodies
    from qsctl.config.snippet import QUEUE_ROOTS, SUBSCRIBER_ROOTS, read_description
    from qsctl.core.admin.request import body_of_xml
    from qsctl.resource import ResourceKind

    if snippet is None or not isinstance(administration.connection, SendsBodies):
        return None
    is_queue = container.kind is ResourceKind.SHARED_SUBSCRIBER
    roots, what = (QUEUE_ROOTS, "queue") if is_queue else (SUBSCRIBER_ROOTS, "shared subscriber")
    element = read_description(snippet.text, roots, source=snippet.source, name=name, around=container.name)
    described = " ".join(str(element.get("name")).split())
    if name and described != name:
        _check_nameless(name, snippet, what)
    check_name(described, what)
    body = body_of_xml(etree.tostring(element, encoding="unicode"))
    replies = administration.create_as_described(container, body, idempotent=idempotent)
    if replies is None:
        return None
    return container.child(ResourceKind(str(element.tag)), described), replies


def checked_selector(text: str) -> str:
    """Return the selector unchanged, after checking its syntax before the service is opened.

    Raises:
        SelectorSyntaxError: with the column and what was expected there.
    """
    if text.strip():
        from qsctl.core.selector.parse import parse_selector

        parse_selector(text)
    return text


def _check_nameless(name: str, snippet: Snippet, kind: str) -> None:
    """Refuse XML with a name that differs from the one on the command line.

    Raises:
        UsageError: the XML has a name.
    """
    from qsctl.config.files.document import parse_document
    from qsctl.core.admin.request import xml_of_body

    root = parse_document(xml_of_body(snippet.text).encode("utf-8", "replace"), snippet.source).root
    found = (root.get("name") or "").strip()
    if found:
        raise UsageError(
            f"the {kind} is called {name!r} on the command line and {found!r} in {snippet.source}",
            remedy="Leave one of the names out.",
        )
