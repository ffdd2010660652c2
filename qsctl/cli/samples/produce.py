"""`qsctl produce`: write samples to a queue's topic [QS 2.4]."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples.produce_results import ProducedSamples
from qsctl.cli.service_options import TargetOptions

if TYPE_CHECKING:
    from qsctl.cli.samples.writer import SampleOrigin

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

_content_option = partial(typer.Option, rich_help_panel="Content (left out: standard input)")
_identity_option = partial(typer.Option, rich_help_panel="Identity")


@dataclass(frozen=True)
class OriginOptions(OptionGroup):
    """The options of the samples' writer, related identity, and lifespan."""

    lifespan: Annotated[
        str,
        typer.Option(
            help="Longest stay of the samples in a queue, a duration such as 1h; a finite one overrides the queue's."
        ),
    ] = "infinite"
    writer_guid: Annotated[
        str,
        _identity_option(
            metavar="HEX",
            help="GUID of the writer, the first part of each sample's identity.",
            show_default="a random one",
        ),
    ] = ""
    first_sequence_number: Annotated[
        int,
        _identity_option(
            min=1, max=2**62, metavar="N", help="Sequence number of the first sample; the others count up from it."
        ),
    ] = 1
    source_guid: Annotated[
        str,
        _identity_option(
            metavar="HEX", help="GUID of the requester that the reply is addressed to.", show_default="the writer's"
        ),
    ] = ""
    related_source_guid: Annotated[
        str, _identity_option(metavar="HEX", help="Source GUID of the requester that a reply is for.")
    ] = ""
    related_identity: Annotated[
        str, _identity_option(metavar="GUID:N", help="Identity of the request that a reply is for.")
    ] = ""
    replicate: Annotated[
        bool,
        typer.Option(
            "--replicate",
            help="Set the flag DDS_REPLICATE_SAMPLE: a service that receives a sample passes it on to other replicas.",
        ),
    ] = False


@COMMANDS.command(
    "produce",
    examples=(
        "qsctl produce Orders --text hello",
        "qsctl produce Orders --file orders.txt --lines",
        "seq 1000 | qsctl produce Orders --lines",
        "qsctl produce Orders --json '{\"id\": 7}' --types types.xml --lifespan 1h",
    ),
)
def produce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE_OR_TOPIC", help="Queue, named as in `get messages`, or a topic.", show_default=False
        ),
    ],
    text: Annotated[list[str] | None, _content_option(help="Text of a sample; may be repeated.")] = None,
    json: Annotated[
        list[str] | None, _content_option(help="Sample as JSON, by the queue's type; may be repeated.")
    ] = None,
    file: Annotated[
        Path | None, _content_option("--file", "-f", help="File whose content is one sample; -: standard input.")
    ] = None,
    lines: Annotated[bool, _content_option("--lines", help="Split the input into one sample a line.")] = False,
    types: Annotated[
        Path | None,
        _content_option(metavar="TYPE_FILE", help="XML or IDL file that defines the queue's type, for --json."),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="Number of times that the whole input is written.")
    ] = 1,
    *,
    origin: OriginOptions,
    service: TargetOptions,
) -> ProducedSamples:
    """Write samples to the topic of a queue; every queue of that topic enqueues its own copy.

    Exits with 0 when all were accepted, 3 when only some were, 7 when none was, 8 when a queue did not answer.
    """
    from qsctl.cli.samples._input import Content, payloads
    from qsctl.cli.samples.writer import write_all
    from qsctl.client.topics import topic_named

    of = origin_of(origin)
    content = Content(tuple(text or ()), tuple(json or ()), file, lines, types, count)
    content.check()
    with service.open() as administration:
        topic = topic_named(name, administration.hosted())
        return write_all(administration.connection, topic, payloads(content, topic.type_name), of)


def origin_of(options: OriginOptions) -> SampleOrigin:
    """Return the origin that the options describe; empty texts mean defaults.

    Raises:
        UsageError: a GUID, an identity or the lifespan is not valid.
    """
    from qsctl.cli.samples.writer import SampleOrigin
    from qsctl.core.messages import SampleFlag
    from qsctl.errors import UsageError
    from qsctl.identity import (
        GUID_SIZE_BYTES,
        NIL_GUID,
        NIL_IDENTITY,
        Guid,
        guid_from_hex,
        identity_from_text,
    )
    from qsctl.instant import parse_duration

    writer = guid_from_hex(options.writer_guid) if options.writer_guid else Guid(os.urandom(GUID_SIZE_BYTES))
    related = identity_from_text(options.related_identity) if options.related_identity else NIL_IDENTITY
    lifespan_ns = parse_duration(options.lifespan)
    if lifespan_ns == 0:
        raise UsageError("--lifespan 0 leaves no time", remedy="Give a duration such as 30s, or infinite.")
    return SampleOrigin(
        writer,
        options.first_sequence_number,
        guid_from_hex(options.source_guid) if options.source_guid else writer,
        guid_from_hex(options.related_source_guid) if options.related_source_guid else NIL_GUID,
        related,
        lifespan_ns,
        SampleFlag.REPLICATE if options.replicate else SampleFlag.NONE,
    )
