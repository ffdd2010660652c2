"""Parser of a raw command, `<ACTION> <resource> [<body>]`, into a `Command` [QS 5.2].

Decides: which action is valid for which resource, and how the body is read. The caller supplies the two readers of XML
bodies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, assert_never

from qsctl.core.admin.command import (
    Command,
    CommandAction,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetConfiguration,
    GetData,
    GetMessages,
    GetStatus,
    Shutdown,
    UpdateQueue,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import Refused, UsageError
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource

_URL: Final = "str://"
ONLY_IF_EMPTY: Final = "only_if_empty"
"""The body of a DELETE that is refused if samples are held."""
STATUS: Final = "status"
"""The body of a GET of /configuration that asks for the status of its replicas, not for its text."""

_ESCAPED_QUOTE: Final = re.compile(r"""=\s*\\["']""")
_ESCAPE: Final = re.compile(r"""\\([\\"'nrt])""")
_ESCAPES: Final = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}


def command_of(
    action: str,
    resource: str,
    body: str,
    *,
    read_queue: Callable[[str], SharedReaderQueueSettings],
    read_subscriber: Callable[[str], SharedSubscriberSettings],
) -> Command:
    """Parse a raw command.

    Args:
        action: CREATE, UPDATE, DELETE, GET or SHUTDOWN, in any case.
        resource: a full resource identifier; SHUTDOWN takes none.
        body: XML as `str://"…"` for CREATE and UPDATE, a selector for samples, otherwise empty.
        read_queue: converts a `<shared_reader_queue>` snippet to settings.
        read_subscriber: converts a `<shared_subscriber>` snippet to settings.

    Raises:
        UsageError: an unknown action, a wrong identifier, or a body that the command does not accept.
        Refused: the action does not exist for this resource, or the body is a URL of another kind.
    """
    try:
        wanted = CommandAction(action.strip().upper())
    except ValueError:
        known = ", ".join(CommandAction)
        raise UsageError(f"{action!r} is not an action", remedy=f"The actions are {known}.") from None
    if wanted is CommandAction.SHUTDOWN:
        _no_body(wanted, body)
        if resource not in ("", "/"):
            raise UsageError(f"SHUTDOWN accepts no resource, found {resource!r}", remedy="It stops the whole service.")
        return Shutdown()
    identifier = parse_resource(resource)
    match wanted:
        case CommandAction.CREATE:
            return _create(identifier, body, read_queue, read_subscriber)
        case CommandAction.UPDATE:
            return _update(identifier, body, read_queue)
        case CommandAction.DELETE:
            return _delete(identifier, body)
        case CommandAction.GET:
            return _get(identifier, body)
        case _:
            assert_never(wanted)


def body_of_xml(xml: str) -> str:
    """Return the XML of an element with attributes as a body that is read as this XML, backslashes included."""
    if _ESCAPED_QUOTE.search(xml):
        xml = xml.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_URL}"{xml}"'


def xml_of_body(body: str, action: CommandAction = CommandAction.CREATE) -> str:
    r"""Return the XML of `str://"…"`, or the body itself if it is XML.

    [QS 5.4.1] prints the text as a C string, `str://"<a b=\"c\">"`, and senders copy its backslashes. If an attribute's
    quotation mark is escaped, all backslashes are read as escapes.

    Raises:
        Refused: the body is another URL: a service neither reads files nor fetches URLs for a client.
        UsageError: the body contains no XML.
    """
    text = body.strip()
    if text.startswith(_URL):
        text = text.removeprefix(_URL).strip()
        if len(text) >= 2 and text[0] == text[-1] == '"':
            text = text[1:-1].strip()
        if _ESCAPED_QUOTE.search(text):
            text = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), text).strip()
    elif "://" in text.partition("<")[0]:
        raise Refused(
            f"the body is {text.partition('<')[0][:80]!r}: no file is read for a client, and nothing fetched",
            remedy='Send the XML itself, as str://"<…>"; `qsctl create-queue --file FILE` does that.',
        )
    if not text.startswith("<"):
        raise UsageError(
            f"{action} needs an XML snippet as its body" + ("" if text else ", which is empty"),
            remedy='Write it as str://"<shared_reader_queue …>".',
        )
    return text


def _create(
    resource: ResourceIdentifier,
    body: str,
    read_queue: Callable[[str], SharedReaderQueueSettings],
    read_subscriber: Callable[[str], SharedSubscriberSettings],
) -> Command:
    if resource.leaf is None and resource.kind is ResourceKind.SHARED_SUBSCRIBER:
        return CreateQueue(resource, read_queue(xml_of_body(body)))
    if resource.leaf is None and resource.kind is ResourceKind.DOMAIN_PARTICIPANT:
        return CreateSubscriber(resource, read_subscriber(xml_of_body(body)))
    raise _no_such_command(
        CommandAction.CREATE, resource, "a shared subscriber (for a queue) or a domain participant (for a subscriber)"
    )


def _update(resource: ResourceIdentifier, body: str, read_queue: Callable[[str], SharedReaderQueueSettings]) -> Command:
    if resource.leaf is None and resource.is_queue():
        return UpdateQueue(resource, read_queue(xml_of_body(body, CommandAction.UPDATE)))
    raise _no_such_command(CommandAction.UPDATE, resource, "a queue")


def _delete(resource: ResourceIdentifier, body: str) -> Command:
    if resource.is_queue() and resource.leaf is ResourceKind.MESSAGE:
        return FlushQueue(resource, body.strip())
    if resource.leaf is None and resource.is_queue():
        return DeleteQueue(resource, only_if_empty(body))
    if resource.leaf is None and resource.kind is ResourceKind.SHARED_SUBSCRIBER:
        return DeleteSubscriber(resource, only_if_empty(body))
    raise _no_such_command(CommandAction.DELETE, resource, "a queue, a queue's /message, or a shared subscriber")


def _get(resource: ResourceIdentifier, body: str) -> Command:
    match resource.leaf:
        case ResourceKind.MESSAGE:
            return GetMessages(resource, body.strip())
        case ResourceKind.STATUS:
            _no_body(CommandAction.GET, body)
            return GetStatus(resource)
        case ResourceKind.DATA:
            _no_body(CommandAction.GET, body)
            return GetData(resource)
        case ResourceKind.CONFIGURATION:
            if body.strip() == STATUS:
                return GetStatus(None)
            _no_body(CommandAction.GET, body)
            return GetConfiguration()
        case _:
            raise _no_such_command(CommandAction.GET, resource, "/status, /data, /configuration, or a queue's /message")


def only_if_empty(body: str) -> bool:
    """Return whether the body of a DELETE is `only_if_empty`, an extension; [QS 5.4.2] has an empty body.

    Raises:
        UsageError: the body is any other text.
    """
    if body.strip() not in ("", ONLY_IF_EMPTY):
        raise UsageError(
            f"the body of this DELETE is {body.strip()[:80]!r}",
            remedy=f"Leave it out, or write {ONLY_IF_EMPTY}, with which nothing that holds samples is deleted.",
        )
    return bool(body.strip())


def _no_body(action: CommandAction, body: str) -> None:
    if body.strip():
        raise UsageError(f"{action} accepts no body here", remedy="Leave the body out.")


def _no_such_command(action: CommandAction, resource: ResourceIdentifier, wanted: str) -> Refused:
    return Refused(f"{action} does not exist for {resource}", remedy=f"{action} accepts {wanted}.")
