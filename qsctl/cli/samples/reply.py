"""`qsctl reply`: answer requests with a program's output, or with one text [QS 2.11, 8.4]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import DdsOptions, QueueArgument
from qsctl.errors import ExitStatus

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)


@dataclass(frozen=True)
class AnsweredRequests(DeclaredResult):
    """The number of answered requests."""

    answered: Annotated[int, "requests whose replies are in the reply queue"]
    rejected: Annotated[int, "requests that were rejected"]

    @property
    def exit_status(self) -> ExitStatus:
        """Return PARTLY_DONE if some requests were rejected, else DONE."""
        return ExitStatus.PARTLY_DONE if self.rejected else ExitStatus.DONE

    def blocks(self) -> Sequence[Block]:
        """Return one line."""
        return [TextBlock(f"{self.answered} answered, {self.rejected} rejected")]


@COMMANDS.command(
    "reply",
    examples=(
        "qsctl reply Quotes@Desk --text 'no quote for {}' --service dds:7",
        "qsctl reply Quotes@Desk --exec ./quote --count 10 --service dds:7",
    ),
)
def reply(
    queue: QueueArgument,
    text: Annotated[str | None, typer.Option(help="Text of the reply; {} is replaced by the request's text.")] = None,
    execute: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Command that replies: the request on its standard input, the reply on its standard output.",
        ),
    ] = None,
    reply_topic: Annotated[str, typer.Option(help="Topic of the reply queue.", show_default="TOPICReply")] = "",
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="Number of requests to answer; 0: no limit.")] = 0,
    *,
    service: DdsOptions,
) -> AnsweredRequests:
    """Answer requests until there were enough, or none arrived for --timeout.

    A request is acknowledged once its reply is in the reply queue. A command that fails rejects its request, as does a
    reply that the reply queue refuses: another replier gets it. Exits with 8 when no request came, and with 3 when
    some were rejected.
    """
    from qsctl.cli.location import seconds
    from qsctl.cli.output.render import note
    from qsctl.cli.samples._reply_maker import reply_maker
    from qsctl.cli.samples._request_queue import request_queue
    from qsctl.client import QueueReplier
    from qsctl.errors import NoAnswer
    from qsctl.identity import NIL_GUID

    make = reply_maker(text, execute)
    wait_s = seconds(service.timeout, "--timeout")
    topic, subscriber, domain_id, settings = request_queue(queue, service.service, wait_s)
    answered = rejected = 0
    with QueueReplier(topic, subscriber, domain_id, reply_topic=reply_topic, settings=settings) as replier:
        replier.wait_for_queue(wait_s)
        while not count or answered + rejected < count:
            requests = replier.receive(1, wait_s)
            if not requests:
                break
            (request,) = requests
            content = None
            if request.delivery.source_guid == NIL_GUID:
                note(f"request {request.identity} names no requester: it is rejected")
            else:
                content = make(request.value)
            if content is not None:
                replier.reply(request, content, finish=False)
                if not replier.wait_for_acknowledgments(wait_s):
                    replier.acknowledge(request)
                    answered += 1
                    continue
                note(f"the reply queue refused the reply to request {request.identity}: the request is rejected")
            replier.reject(request)
            rejected += 1
    if not answered and not rejected:
        raise NoAnswer(f"no request arrived in {wait_s:g} s", remedy="Give it more time with --timeout.")
    return AnsweredRequests(answered, rejected)
