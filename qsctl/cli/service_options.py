"""Options that the commands against a service share, beside those of `options.py`."""

from __future__ import annotations

from typing import Annotated

import typer

TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="PATTERN",
        help="Application name of the service, or a POSIX pattern such as 'Queuing*'.",
        rich_help_panel="Service",
    ),
]
IdempotentOption = Annotated[
    bool,
    typer.Option("--idempotent", help="Succeed when it is already so: created before as given, or gone."),
]
QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help="Q, SUBSCRIBER/Q, PARTICIPANT/SUBSCRIBER/Q, TOPIC@SUBSCRIBER, or a resource identifier.",
        show_default=False,
    ),
]
SelectOption = Annotated[
    str,
    typer.Option(
        "--select",
        metavar="SELECTOR",
        help="Only the samples that this selector picks, as in '@sample_queue_status = SENT_MESSAGE_STATUS'.",
    ),
]

DEFAULT_TARGET = "*"
SERVICE_PANEL = "Administer a service"
SAMPLES_PANEL = "Produce and consume"
