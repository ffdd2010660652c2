"""`qsctl move` and `qsctl requeue`: move samples to another queue, or dead letters back to their own [QS 2.12]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.command import Commands
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples.move_results import MovedSamples, MovedTo
from qsctl.cli.service_options import QueueArgument, SelectOption, TargetOptions
from qsctl.errors import Interrupted, PartlyDone, QsctlError, UsageError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.client.transfer import Transfer
    from qsctl.core.admin.reply import MessageData, QueueData, ServiceData
    from qsctl.resource import ResourceIdentifier

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=0, max=2**31 - 1, help="Largest number of samples; 0: all of them.")
]
RateOption = Annotated[
    float, typer.Option(min=0, metavar="N", help="Largest number of samples a second; 0: as fast as the service is.")
]


@dataclass(frozen=True)
class TransferOptions(OptionGroup):
    """The options that select the samples to move, and their rate."""

    select: SelectOption = ""
    limit: LimitOption = 0
    rate: RateOption = 0.0
    dry_run: DryRunOption = False


class DeathReason(StrEnum):
    """The reason why a sample became a dead letter [QS 2.12]."""

    LIFESPAN = "LIFESPAN"
    MAX_RETRIES = "MAX_RETRIES"


@COMMANDS.command(
    "move",
    examples=(
        "qsctl move Orders Archive",
        "qsctl move Orders Archive --limit 100 --rate 50",
        "qsctl move DeadLetters Inspection --dry-run",
    ),
)
def move(
    source: QueueArgument,
    to: Annotated[
        str,
        typer.Argument(metavar="TO_QUEUE", help="Queue that they go to, named as QUEUE is.", show_default=False),
    ],
    *,
    transfer: TransferOptions,
    service: TargetOptions,
) -> MovedSamples:
    """Move samples from a queue to another, with identity, related identities, flags and the end of their lifespan.

    A sample that a consumer has stays. Inside one service each is in one queue at any time. Elsewhere each is in the
    target before it leaves the source, and is flagged as redelivered there: after a kill it may be in both, and the
    next move finds it. Exits with 3 when the target refused some, and with 7 when it refused all.
    """
    selector = checked_selector(transfer.select)
    with service.open() as administration:
        data = administration.hosted()
        begin, end = administration.queue_named(source), administration.queue_named(to)
        if begin.bare == end.bare:
            raise UsageError(f"{source} and {to} are one queue", remedy="Name two.")
        require_one_type(data_of(data, begin), data_of(data, end))
        return _transferred(administration, begin, lambda _sample: end, selector, transfer, verb="moved")


@COMMANDS.command(
    "requeue",
    examples=(
        "qsctl requeue DeadLetters --dry-run",
        "qsctl requeue DeadLetters --from Orders --reason MAX_RETRIES --limit 10",
        "qsctl requeue DeadLetters --rate 100",
    ),
)
def requeue(
    queue: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE",
            help="Dead-letter queue, named as in `get messages`.",
            show_default=False,
        ),
    ],
    came_from: Annotated[
        str,
        typer.Option("--from", metavar="QUEUE", help="Queue whose dead letters go back.", show_default="every queue"),
    ] = "",
    reason: Annotated[
        DeathReason | None, typer.Option(help="Reason of the dead letters that go back.", show_default="both")
    ] = None,
    *,
    transfer: TransferOptions,
    service: TargetOptions,
) -> MovedSamples:
    """Put dead letters back into the queues that they come from, with their identity, to be delivered again.

    Attempts and lifespan begin anew. Inside one service each is in one queue at any time, and is flagged as redelivered
    only if a consumer may have processed it. Elsewhere each is flagged, and back in its queue before it leaves the dead
    letters: after a kill it may be in both, and the next call finds it. Exits with 3 when some stay, for their queue is
    full or not hosted any more, and with 7 when all do.
    """
    from qsctl.resource import ResourceKind

    selector = checked_selector(transfer.select)
    with service.open() as administration:
        data = administration.hosted()
        dead_letters = administration.queue_named(queue)
        if dead_letters.kind is not ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE:
            raise UsageError(f"{queue} is not a dead-letter queue", remedy="Use `qsctl move` for other queues.")
        origins = _origins(data, dead_letters)
        only = administration.queue_named(came_from) if came_from else None

        def is_wanted(sample: MessageData) -> bool:
            return (reason is None or sample.dead_letter_reason == reason) and (
                only is None or origins.get(sample.dead_letter_from) == only
            )

        def target_of(sample: MessageData) -> ResourceIdentifier | None:
            return origins.get(sample.dead_letter_from)

        return _transferred(
            administration,
            dead_letters,
            target_of,
            selector,
            transfer,
            verb="requeued",
            is_wanted=is_wanted,
            begins_anew=True,
        )


def _transferred(
    administration: Administration,
    source: ResourceIdentifier,
    target_of: Callable[[MessageData], ResourceIdentifier | None],
    selector: str,
    options: TransferOptions,
    *,
    verb: str,
    is_wanted: Callable[[MessageData], bool] = lambda _sample: True,
    begins_anew: bool = False,
) -> MovedSamples:
    from qsctl.client.transfer import BATCH_COUNT, Transfer, require_one_place

    require_one_place(administration, source)
    transfer = Transfer(
        administration,
        source,
        target_of,
        selector,
        options.limit or None,
        options.rate,
        is_wanted=is_wanted,
        begins_anew=begins_anew,
        is_trial=options.dry_run,
    )
    try:
        for _ in transfer.steps():
            pass
    except KeyboardInterrupt:
        more = f"{BATCH_COUNT} more at most are{', or are in both queues' * transfer.copies}"
        raise Interrupted(f"interrupted; {transfer.moved_count} samples are {verb}; {more}") from None
    except QsctlError as error:
        if not transfer.moved_count:
            raise
        raise PartlyDone(
            f"{error.message}\n{transfer.moved_count} are {verb}; {BATCH_COUNT} more at most are"
            f"{' in both queues' if transfer.copies else ', each in one queue'}.",
            remedy=error.remedy or "Run the command again: it goes on.",
        ) from None
    return _moved(transfer, source, verb)


def _moved(transfer: Transfer, source: ResourceIdentifier, verb: str) -> MovedSamples:
    from qsctl.core.admin.resolve import short_name

    return MovedSamples(
        short_name(source),
        tuple(
            MovedTo(short_name(each.target), each.moved_count, each.duplicate_count, each.refused_count, each.reason)
            for each in transfer.results.values()
        ),
        transfer.stayed_count,
        transfer.is_trial,
        verb,
    )


def _origins(data: ServiceData, dead_letters: ResourceIdentifier) -> dict[str, ResourceIdentifier]:
    """Return the queues by `<topic>@<subscriber>`, which is how a dead letter names its original queue.

    Several domain participants may have subscribers of one name. A label then refers to the queue in the subscriber of
    the dead-letter queue, if that has one; else an ambiguous label is omitted.
    """
    from qsctl.resource import parse_resource

    found: dict[str, list[ResourceIdentifier]] = {}
    for queue in data.queues:
        resource = parse_resource(queue.resource)
        if not queue.is_dead_letter:
            found.setdefault(f"{queue.topic_name}@{resource.parent.name}", []).append(resource)
    own = {label: each for label, all_of in found.items() for each in all_of if each.parent == dead_letters.parent}
    return {label: all_of[0] for label, all_of in found.items() if len(all_of) == 1} | own


def data_of(data: ServiceData, queue: ResourceIdentifier) -> QueueData:
    """Return the data of a queue.

    Raises:
        NotFound: no service hosts it.
    """
    from qsctl.errors import NotFound

    for each in data.queues:
        if each.resource == str(queue.bare):
            return each
    raise NotFound(f"there is no queue {queue.bare}", remedy="List the queues with `qsctl get data`.")


def require_one_type(source: QueueData, target: QueueData) -> None:
    """Refuse to move samples to a queue whose consumers cannot read them.

    Raises:
        UsageError: the queues have different types, or only the target is a dead-letter queue.
    """
    if target.is_dead_letter and not source.is_dead_letter:
        raise UsageError(
            f"{target.queue_name} accepts only dead letters", remedy="Name a queue that is not a dead-letter queue."
        )
    if source.type_name and target.type_name and source.type_name != target.type_name:
        raise UsageError(
            f"{source.queue_name} has samples of {source.type_name}, {target.queue_name} of {target.type_name}",
            remedy="Name a queue of the same type.",
        )
