"""Removal of many samples by one command, spread over several turns [QS 5.4.2, 5.4.3 and 5.4.8].

Decides: the order of removal. A queue may hold millions of samples, and the service continues with other work between
the turns. Undispatched samples are removed first and samples with consumers last: a consumer whose window opened would
otherwise be sent samples that are about to be removed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from qsctl.core.admin._reading import candidates, is_selected
from qsctl.core.admin.reply import Reply, refusal
from qsctl.core.hosted_service import HostedService
from qsctl.core.queue.sample import Sample, SampleState
from qsctl.core.selector.expression import EVERYTHING, Expression
from qsctl.errors import QsctlError
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier

_SENT = SampleState.SENT


class SampleRemoval:
    """One FLUSH or DELETE in progress. Samples that arrive after its start are not removed.

    Args:
        host: the service that commands read and change.
        queues: the queues of the service from which samples are removed.
        finish: called once with the instant and the number of removed samples after the last removal; returns the
            reply.
        expression: selects the samples to remove.
    """

    waits_for_room = False
    """Whether it pauses while outgoing replies are backed up; it has a single reply, so it does not."""

    def __init__(
        self,
        host: HostedService,
        queues: Iterable[ResourceIdentifier],
        finish: Callable[[Nanoseconds, int], Reply],
        expression: Expression = EVERYTHING,
    ) -> None:
        self._host = host
        self._finish = finish
        self._expression = expression
        self._waiting = deque((queue, deque(candidates(host, queue, expression))) for queue in queues)
        self._with_consumers = deque[tuple[ResourceIdentifier, deque[Sample]]]()
        self._removed_count = 0
        self.is_over = False
        """Whether the reply was returned."""

    def go_on(self, now: Nanoseconds) -> list[Reply]:
        """Remove the next samples; return the reply after the last, or an error if a queue was deleted meanwhile."""
        left_count = self._host.share_count
        try:
            while left_count and (stage := self._waiting or self._with_consumers):
                left_count -= self._remove(now, stage, left_count)
            if self._waiting or self._with_consumers:
                return []
            self.is_over = True
            return [self._finish(now, self._removed_count)]
        except QsctlError as error:
            self.is_over = True
            return [refusal(error)]

    def _remove(self, now: Nanoseconds, stage: deque[tuple[ResourceIdentifier, deque[Sample]]], count_max: int) -> int:
        """Process at most `count_max` samples of a stage's first queue; return the number processed."""
        queue, samples = stage[0]
        share = [samples.popleft() for _ in range(min(count_max, len(samples)))]
        if not samples:
            stage.popleft()
        going = [each for former in share if (each := self._host.present(queue, former)) is not None]
        if self._expression != EVERYTHING:
            going = [each for each in going if self._selects(each)]
        if stage is self._waiting and (sent := deque(each for each in going if each.state is _SENT)):
            self._with_consumers.append((queue, sent))
            going = [each for each in going if each.state is not _SENT]
        self._removed_count += self._host.flush(now, queue, going)
        return len(share)

    def _selects(self, sample: Sample) -> bool:
        return is_selected(sample, self._expression)
