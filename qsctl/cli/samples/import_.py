"""`qsctl import`: enqueue the samples of a file in a queue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input
from qsctl.cli.command import Commands
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.samples.export import FormatOption
from qsctl.cli.samples.move import DryRunOption, LimitOption, RateOption
from qsctl.cli.samples.move_results import MovedSamples, MovedTo
from qsctl.cli.service_options import QueueArgument, TargetOptions
from qsctl.errors import Interrupted, PartlyDone, QsctlError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.core.inserted_sample import InsertedSample
    from qsctl.resource import ResourceIdentifier

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)


@COMMANDS.command(
    "import",
    examples=(
        "qsctl import orders.jsonl Orders",
        "qsctl import dead.parquet Inspection --dry-run",
        "qsctl import orders.jsonl Orders --skip 5000 --rate 1000",
    ),
)
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File that `qsctl export` wrote, or one like it; -: standard input.",
            show_default=False,
        ),
    ],
    queue: QueueArgument,
    format: FormatOption = None,
    types: Annotated[
        Path | None,
        typer.Option(metavar="TYPE_FILE", help="XML or IDL file that defines the queue's type, for contents in JSON."),
    ] = None,
    skip: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of samples at the beginning that are passed over.")
    ] = 0,
    limit: LimitOption = 0,
    rate: RateOption = 0.0,
    keep_expiry: Annotated[
        bool,
        typer.Option(
            "--keep-expiry",
            help="Keep the end of each lifespan as in the file; without it the queue's lifespan begins anew.",
        ),
    ] = False,
    keep_flag: Annotated[
        bool,
        typer.Option(
            "--keep-flag",
            help="Keep the redelivered flag as in the file; without it the flag is set, for another copy may exist.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    *,
    service: TargetOptions,
) -> MovedSamples:
    """Enqueue the samples of a file in one queue, with the identities, related identities and flags of the file.

    The whole file is checked first. A sample that the queue holds is not enqueued twice; a line without an identity
    gets one from the file's content, so that a file may be imported again. Exits with 3 when the queue refused some,
    and with 7 when it refused all.
    """
    from qsctl.cli.samples.json_form import read_type_file
    from qsctl.cli.samples.sample_files import format_of, read_samples, source_file
    from qsctl.client.transfer import require_one_place
    from qsctl.core.admin.resolve import short_name
    from qsctl.instant import INFINITE_NS

    library = read_type_file(types)
    form = format_of(file, format)
    label = STANDARD_INPUT if is_standard_input(file) else str(file)
    with source_file(file) as source, service.open() as administration:
        resource = administration.queue_named(queue)
        require_one_place(administration, resource)
        type_name = administration.queue_data(resource)[0].body.type_name

        def samples() -> Iterator[InsertedSample]:
            for at, each in enumerate(read_samples(source, label, form, library, type_name)):
                if limit and at >= skip + limit:
                    return
                if at >= skip:
                    yield msgspec.structs.replace(
                        each,
                        redelivered=each.redelivered if keep_flag else True,
                        expires_at_ns=each.expires_at_ns if keep_expiry else INFINITE_NS,
                    )

        name = short_name(resource)
        checked_count = sum(1 for _ in samples())
        to = MovedTo(name, checked_count, 0, 0, "")
        if not dry_run:
            to = _insert(administration, resource, to, samples(), rate, skip)
    return MovedSamples(label, (to,), 0, dry_run, "imported")


def _insert(
    administration: Administration,
    queue: ResourceIdentifier,
    whole: MovedTo,
    samples: Iterator[InsertedSample],
    per_second: float,
    skipped_count: int,
) -> MovedTo:
    from qsctl.client.transfer import BATCH_COUNT, in_parts
    from qsctl.core.queue.insertion import OF_ONE_SAMPLE

    begun_s = time.monotonic()
    done = replace(whole, moved_count=0)
    count = max(1, min(BATCH_COUNT, int(per_second / 10))) if per_second else BATCH_COUNT
    unanswered = 0
    try:
        for part in in_parts(samples, lambda sample: len(sample.payload), count):
            unanswered = len(part)
            changed = administration.insert_samples(queue, part)
            refused_count = len(changed.refused)
            done = replace(
                done,
                moved_count=done.moved_count + len(part) - refused_count,
                duplicate_count=done.duplicate_count + changed.duplicate_count,
                refused_count=done.refused_count + refused_count,
                reason=done.reason or changed.reason,
            )
            unanswered = 0
            if refused_count and changed.reason not in OF_ONE_SAMPLE:
                first = skipped_count + done.moved_count + done.refused_count - len(part) + changed.refused[0]
                left_count = whole.moved_count - done.moved_count - done.refused_count
                return replace(
                    done,
                    refused_count=done.refused_count + left_count,
                    reason=f"{changed.reason}; go on with --skip {first}",
                )
            if per_second:
                time.sleep(max(0.0, begun_s + done.moved_count / per_second - time.monotonic()))
    except KeyboardInterrupt:
        more = f"; {unanswered} more were on their way and may be" if unanswered else ""
        raise Interrupted(f"interrupted; {done.moved_count} samples are imported{more}") from None
    except QsctlError as error:
        if not done.moved_count:
            raise
        raise PartlyDone(
            f"{error.message}\n{done.moved_count} samples are imported.",
            remedy=f"Go on with --skip {skipped_count + done.moved_count + done.refused_count}.",
        ) from None
    return done
