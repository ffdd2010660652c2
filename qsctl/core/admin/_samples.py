"""Commands that insert, move, flag or remove listed samples (an extension).

Decides: the replies. `core.queue.insertion` decides about each inserted sample. A move between two queues of one
service is atomic. A client that moves samples between services flags, inserts and removes them, and waits for each
reply, which rests on the records: after a crash in between, the samples are in the source, or in both queues and
flagged in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qsctl.core.admin.command import HeldSample, MoveSamples
from qsctl.core.admin.reply import Reply, ReturnCode, SamplesChanged
from qsctl.core.admin.resolve import short_name
from qsctl.core.hosted_service import HostedService
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.queue.dead_letter import dead_letter_identity
from qsctl.core.queue.insertion import Insertion
from qsctl.core.queue.sample import DeadLetterOrigin, Sample
from qsctl.core.records import DeadLetterReason
from qsctl.errors import Refused
from qsctl.identity import NIL_INCARNATION
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier

SAMPLES_MAX: Final = 2_000
"""Maximum number of samples of one command: all of them are processed in a single turn, which delays other work."""


def insert_samples(
    host: HostedService, now: Nanoseconds, queue: ResourceIdentifier, samples: Sequence[InsertedSample]
) -> Reply:
    """Enqueue samples; the reply lists the refused ones.

    Raises:
        Refused: there are too many samples, the queue is being deleted, or another replica is its master.
    """
    _check_count(samples)
    became = host.insert(now, queue, samples)
    refused = tuple(at for at, each in enumerate(became) if not each.is_done)
    done_count = len(became) - len(refused)
    body = SamplesChanged(
        done_count, became.count(Insertion.HELD_ALREADY), refused, became[refused[0]].value if refused else ""
    )
    return Reply(ReturnCode.OK, f"{done_count} of {len(became)} samples are in queue {short_name(queue)}", body)


def move_samples(
    host: HostedService, now: Nanoseconds, source: ResourceIdentifier, target: ResourceIdentifier, command: MoveSamples
) -> Reply:
    """Move samples to another queue of the service; the reply lists those that remain in the source.

    Raises:
        Refused: there are too many samples, source and target are the same queue, the source was created again since
            the client read it, or `HostedService.move` refuses.
    """
    samples = command.samples
    _check_count(samples)
    if source == target:
        raise Refused(f"{short_name(source)} is both source and target", remedy="Name two queues.")
    if command.payloads and len(command.payloads) != len(samples):
        raise Refused(f"{len(samples)} samples are named with {len(command.payloads)} payloads", remedy="One each.")
    if command.incarnation not in (NIL_INCARNATION, host.queue(source).incarnation):
        raise Refused(f"queue {short_name(source)} was deleted and created again", remedy="Read its samples again.")
    held = [_held(host, source, each) for each in samples]
    became = host.move(now, source, target, held, command.payloads, begins_anew=command.begins_anew)
    absent = tuple(at for at, each in enumerate(became) if each is Insertion.NOT_WAITING)
    lacking = tuple(at for at, each in enumerate(became) if each is Insertion.NO_PAYLOAD)
    refused = tuple(
        at
        for at, each in enumerate(became)
        if not each.is_done and each not in (Insertion.NOT_WAITING, Insertion.NO_PAYLOAD)
    )
    done_count = len(became) - len(refused) - len(absent) - len(lacking)
    reason = became[refused[0]].value if refused else ""
    body = SamplesChanged(done_count, became.count(Insertion.HELD_ALREADY), refused, reason, absent, lacking)
    return Reply(ReturnCode.OK, f"{done_count} of {len(became)} samples are in queue {short_name(target)}", body)


def flag_samples(host: HostedService, queue: ResourceIdentifier, samples: Sequence[HeldSample]) -> Reply:
    """Flag the listed samples as redelivered if the queue holds them and no consumer has them.

    Raises:
        Refused: there are too many samples, or another replica is the queue's master.
    """
    _check_count(samples)
    became = host.flag(queue, [_held(host, queue, each) for each in samples])
    refused = tuple(at for at, is_flagged in enumerate(became) if not is_flagged)
    done_count = len(became) - len(refused)
    body = SamplesChanged(done_count, 0, refused, "a consumer has it, or had it" if refused else "")
    return Reply(ReturnCode.OK, f"{done_count} of {len(became)} samples of queue {short_name(queue)} are flagged", body)


def remove_samples(
    host: HostedService, now: Nanoseconds, queue: ResourceIdentifier, samples: Sequence[HeldSample]
) -> Reply:
    """Remove the listed samples that the queue holds; the reply lists the missing ones.

    Raises:
        Refused: there are too many samples, or another replica is the queue's master.
    """
    _check_count(samples)
    found = [_held(host, queue, each) for each in samples]
    removed_count = host.flush(now, queue, [each for each in found if each is not None])
    missing = tuple(at for at, each in enumerate(found) if each is None)
    body = SamplesChanged(removed_count, 0, missing, "the queue does not hold it" if missing else "")
    return Reply(ReturnCode.OK, f"{removed_count} of {len(found)} samples removed from queue {short_name(queue)}", body)


def _held(host: HostedService, queue: ResourceIdentifier, meant: HeldSample) -> Sample | None:
    identity = meant.identity
    if meant.dead_letter_from:
        reason = DeadLetterReason.MAX_RETRIES  # not part of the identity
        position, incarnation = meant.dead_letter_position, meant.dead_letter_incarnation
        identity = dead_letter_identity(
            DeadLetterOrigin(meant.dead_letter_from, position, meant.identity, reason, incarnation)
        )
    sample = host.sample(queue, identity)
    return sample if sample is not None and sample.position == meant.position else None


def _check_count(samples: Sequence[object]) -> None:
    if len(samples) > SAMPLES_MAX:
        raise Refused(f"the command names {len(samples)} samples", remedy=f"Name at most {SAMPLES_MAX} in one command.")
