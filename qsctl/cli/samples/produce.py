"""`qsctl produce`: write samples to a queue's topic (manual, section 2.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qsctl.cli.command import command
from qsctl.cli.location import open_connection
from qsctl.cli.options import (
    DEFAULT_SERVICE,
    DEFAULT_STATE_DIR,
    DEFAULT_TIMEOUT,
    ServiceOption,
    StateDirOption,
    TimeoutOption,
)
from qsctl.cli.samples.produce_results import Produced
from qsctl.cli.service_options import DEFAULT_TARGET, SAMPLES_PANEL, TargetOption

_CONTENT = "Content (left out: standard input)"
_IDENTITY = "Identity"


def produce(
    name: Annotated[
        str,
        typer.Argument(metavar="QUEUE_OR_TOPIC", help="A queue, as in `get messages`, or a topic.", show_default=False),
    ],
    text: Annotated[
        list[str] | None, typer.Option("--text", help="A sample's text; may be repeated.", rich_help_panel=_CONTENT)
    ] = None,
    json: Annotated[
        list[str] | None,
        typer.Option(
            "--json", help="A sample as JSON, by the queue's type; may be repeated.", rich_help_panel=_CONTENT
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="A file whose content is one sample; -: stdin.", rich_help_panel=_CONTENT),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Every line of the input is a sample.", rich_help_panel=_CONTENT)
    ] = False,
    types: Annotated[
        Path | None,
        typer.Option(
            "--types",
            metavar="XML_FILE",
            help="Where the queue's type is defined, for --json.",
            rich_help_panel=_CONTENT,
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Write the whole input so many times.")] = 1,
    lifespan: Annotated[
        str, typer.Option("--lifespan", help="How long the samples may stay; finite: it goes before the queue's.")
    ] = "infinite",
    writer_guid: Annotated[
        str,
        typer.Option("--writer-guid", metavar="HEX", help="Default: a random one.", rich_help_panel=_IDENTITY),
    ] = "",
    first_sequence_number: Annotated[
        int,
        typer.Option(
            "--first-sequence-number",
            min=1,
            max=2**62,
            metavar="N",
            help="The samples count up from it.",
            rich_help_panel=_IDENTITY,
        ),
    ] = 1,
    source_guid: Annotated[
        str,
        typer.Option(
            "--source-guid",
            metavar="HEX",
            help="Who asks, for replies. Default: the writer.",
            rich_help_panel=_IDENTITY,
        ),
    ] = "",
    related_source_guid: Annotated[
        str,
        typer.Option("--related-source-guid", metavar="HEX", help="A reply: to whom.", rich_help_panel=_IDENTITY),
    ] = "",
    related_identity: Annotated[
        str,
        typer.Option(
            "--related-identity", metavar="GUID:N", help="A reply: to which request.", rich_help_panel=_IDENTITY
        ),
    ] = "",
    service: ServiceOption = DEFAULT_SERVICE,
    state_dir: StateDirOption = DEFAULT_STATE_DIR,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    target: TargetOption = DEFAULT_TARGET,
) -> Produced:
    """Write samples to the topic of a queue; every queue of that topic takes its own copy.

    Exits with 0 when all were accepted, 3 when only some were, 7 when none was, 8 when a queue did not answer.
    """
    from qsctl.cli.samples.input import Content, payloads
    from qsctl.cli.samples.writer import Origin, write_all
    from qsctl.client.admin import Administration
    from qsctl.client.topics import topic_named

    origin = Origin.given(
        writer_guid=writer_guid,
        first_sequence_number=first_sequence_number,
        source_guid=source_guid,
        related_source_guid=related_source_guid,
        related_identity=related_identity,
        lifespan=lifespan,
    )
    content = Content(tuple(text or ()), tuple(json or ()), file, lines, types, count)
    content.check()
    with open_connection(service, state_dir, timeout) as connection:
        topic = topic_named(name, Administration(connection, target).hosted())
        return write_all(connection, topic, payloads(content, topic.type_name), origin)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "produce",
        panel=SAMPLES_PANEL,
        examples=(
            "qsctl produce Orders --text hello",
            "qsctl produce Orders --file orders.txt --lines",
            "seq 1000 | qsctl produce Orders --lines",
            "qsctl produce Orders --json '{\"id\": 7}' --types types.xml --lifespan 1h",
        ),
    )(produce)
