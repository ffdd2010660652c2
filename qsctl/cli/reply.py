"""`qsctl reply`: answer requests with a program's output, or with one text (manual, sections 2.11 and 8.4)."""

from __future__ import annotations

from typing import Annotated

import typer

from qsctl.cli.command import command
from qsctl.cli.options import DEFAULT_TIMEOUT, TimeoutOption
from qsctl.cli.results import Done
from qsctl.cli.service_options import SAMPLES_PANEL


def reply(
    queue: Annotated[str, typer.Argument(metavar="TOPIC@SUBSCRIBER", help="The request queue.", show_default=False)],
    text: Annotated[str | None, typer.Option("--text", help="The reply; {} stands for the request's text.")] = None,
    execute: Annotated[
        str | None,
        typer.Option("--exec", metavar="COMMAND", help="A command: the request on its stdin, the reply its stdout."),
    ] = None,
    reply_topic: Annotated[
        str, typer.Option("--reply-topic", help="Topic of the reply queue; default: TOPIC and 'Reply'.")
    ] = "",
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="Requests to answer; 0: without end.")] = 0,
    service: Annotated[
        str,
        typer.Option("--service", envvar="QSCTL_SERVICE", help="dds:DOMAIN of the queues.", rich_help_panel="Service"),
    ] = "dds:0",
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> Done:
    """Answer requests until there were enough, or none came for --timeout.

    A command that fails rejects its request: another replier gets it. Exits with 8 when no request came.
    """
    import shlex
    import subprocess

    from qsctl.cli.location import seconds
    from qsctl.cli.request_queue import dds_place, printable, queue_and_subscriber
    from qsctl.client.blocking import ReceivedSample
    from qsctl.client.blocking_requests import QueueReplier
    from qsctl.errors import NoAnswer, UsageError

    if (text is None) == (execute is None):
        raise UsageError("a reply is made by --text or by --exec", remedy="Give one of them.")
    topic, subscriber = queue_and_subscriber(queue)
    domain_id, settings = dds_place(service)
    wait_s = seconds(timeout, "--timeout")
    answered = rejected = 0
    with QueueReplier[bytes](topic, subscriber, domain_id, reply_topic=reply_topic, settings=settings) as replier:
        replier.wait_for_queues(wait_s)
        while not count or answered + rejected < count:
            requests: list[ReceivedSample[bytes]] = replier.receive(1, wait_s)
            if not requests:
                break
            if text is not None:
                replier.reply(requests[0], text.replace("{}", printable(requests[0].value)).encode())
                answered += 1
                continue
            run = subprocess.run(
                shlex.split(execute or ""), input=requests[0].value, stdout=subprocess.PIPE, check=False
            )
            if run.returncode:
                replier.reject(requests[0])
                rejected += 1
            else:
                replier.reply(requests[0], run.stdout)
                answered += 1
        replier.wait_for_acknowledgments(wait_s)
    if not answered and not rejected:
        raise NoAnswer(f"no request came in {wait_s:g} s", remedy="Give it more time with --timeout.")
    return Done(f"{answered} answered, {rejected} rejected")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "reply",
        panel=SAMPLES_PANEL,
        examples=(
            "qsctl reply Quotes@Desk --text 'no quote for {}' --service dds:7",
            "qsctl reply Quotes@Desk --exec ./quote --count 10 --service dds:7",
        ),
    )(reply)
