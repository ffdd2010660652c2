"""What commands read from XML files, XML text and selectors before they send anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.queue_options import QueueOptions, check_name
from qsctl.errors import InvalidInput, NotFound, UsageError

if TYPE_CHECKING:
    from qsctl.core.queue.settings import SharedReaderQueueSettings
    from qsctl.core.settings import SharedSubscriberSettings

MAX_SNIPPET_BYTES: Final = 1_000_000
"""The most XML that an administration command carries."""

FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="XML_FILE", help="Read the configuration from this XML snippet; -: stdin."),
]
XmlOption = Annotated[str | None, typer.Option("--xml", metavar="XML", help="The XML snippet itself.")]


def read_queue(name: str, options: QueueOptions, file: Path | None, xml: str | None) -> SharedReaderQueueSettings:
    """A queue's settings from options or from XML.

    Raises:
        UsageError: both were given, or a name is missing or contradicts the XML.
        InvalidInput: the XML is wrong; says where and what.
    """
    snippet = _snippet(file, xml)
    if snippet is None:
        return options.settings(name)
    if options.given():
        raise UsageError(
            f"{', '.join(options.given())} cannot go with XML", remedy="Write it in the XML, or use options only."
        )
    text, source = snippet
    settings = queue_of_xml(text, source)
    _check_same_name(name, settings.name, "queue", source)
    return settings


def read_subscriber(name: str, file: Path | None, xml: str | None) -> SharedSubscriberSettings:
    """A shared subscriber's settings: an empty one of this name, or what the XML says.

    Raises:
        UsageError: a name is missing or contradicts the XML.
        InvalidInput: the XML is wrong; says where and what.
    """
    snippet = _snippet(file, xml)
    if snippet is None:
        from qsctl.core.settings import SharedSubscriberSettings

        return SharedSubscriberSettings(check_name(name, "shared subscriber"))
    text, source = snippet
    settings = subscriber_of_xml(text, source)
    _check_same_name(name, settings.name, "shared subscriber", source)
    return settings


def queue_of_xml(xml: str, source: str = "the body") -> SharedReaderQueueSettings:
    """The settings of a `<shared_reader_queue>` or `<dead_letter_shared_reader_queue>` snippet.

    Raises:
        InvalidInput: the XML is wrong; every problem with its line.
    """
    from qsctl.config.snippet import read_queue_snippet

    return read_queue_snippet(xml, source=source)


def subscriber_of_xml(xml: str, source: str = "the body") -> SharedSubscriberSettings:
    """The settings of a `<shared_subscriber>` snippet, its queues included.

    Raises:
        InvalidInput: the XML is wrong; every problem with its line.
    """
    from qsctl.config.snippet import read_subscriber_snippet

    return read_subscriber_snippet(xml, source=source)


def checked_selector(text: str) -> str:
    """The selector itself, when it can be read: a wrong one is told before the service is opened.

    Raises:
        SelectorSyntaxError: says the column and what was expected there.
    """
    if text.strip():
        from qsctl.core.selector.parse import parse_selector

        parse_selector(text)
    return text


def _snippet(file: Path | None, xml: str | None) -> tuple[str, str] | None:
    if file is not None and xml is not None:
        raise UsageError("--file and --xml are both given", remedy="Give one of them.")
    if xml is not None:
        return xml, "--xml"
    if file is None:
        return None
    if str(file) == "-":
        return sys.stdin.read(MAX_SNIPPET_BYTES + 1), "standard input"
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.read(MAX_SNIPPET_BYTES + 1), str(file)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}", remedy="Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}", remedy="Give a readable UTF-8 file.") from None


def _check_same_name(wanted: str, found: str, kind: str, source: str) -> None:
    check_name(found, kind)
    if wanted and wanted != found:
        raise UsageError(
            f"the {kind} is called {wanted!r} on the command line and {found!r} in {source}",
            remedy="Leave one of the names out.",
        )
