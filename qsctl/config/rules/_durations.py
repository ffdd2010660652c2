"""Rules about durations: consistent parts, values above zero, and periods that must be in proportion."""

from __future__ import annotations

from collections.abc import Iterator

from lxml.etree import _Element

from qsctl.config.files.document import text_of
from qsctl.config.rules._place import QueuePlace, ServicePlace
from qsctl.declared.problems import Problem, problem_at
from qsctl.declared.values import ValueForm, nanoseconds, seconds
from qsctl.instant import INFINITE_NS, format_duration


def infinite_nanoseconds_need_infinite_seconds(root: _Element) -> Iterator[Problem]:
    """Check that no duration has infinite nanoseconds and finite seconds, which means nothing."""
    for part in root.iter("nanosec"):
        parent = part.getparent()
        sec = parent.find("sec") if parent is not None else None
        try:
            infinite = bool(text_of(part)) and nanoseconds(text_of(part)) is None
            finite = sec is None or not text_of(sec) or seconds(text_of(sec)) is not None
        except ValueForm:
            continue  # the schema has reported it
        if infinite and finite:
            yield problem_at(
                part,
                "infinite nanoseconds beside finite seconds mean nothing",
                found=text_of(part),
                allowed="infinite only together with DURATION_INFINITE_SEC",
            )


def dequeue_period_stands_once(root: _Element) -> Iterator[Problem]:
    """Check that `<dequeue_period>` is in `<session>` or in its `<thread>`, not in both [QS Table 3.13]."""
    for session in root.iter("session"):
        inner = session.find("thread/dequeue_period")
        if inner is not None and session.find("dequeue_period") is not None:
            yield problem_at(
                inner,
                "the session has two periods",
                found="<dequeue_period> in <session> and in <thread>",
                allowed="one of them",
            )


def sessions_dequeue_periodically(place: ServicePlace) -> Iterator[Problem]:
    """Check that no session has a dequeue period of zero, which would poll without pause [QS Table 3.13]."""
    for participant in place.configuration.service.participants:
        for subscriber in participant.subscribers:
            for session in subscriber.sessions:
                if session.dequeue_period_ns == 0:
                    path = (
                        f"{place.path}/domain_participant[{participant.name}]/shared_subscriber[{subscriber.name}]"
                        f"/session_settings/session[{session.name}]/dequeue_period"
                    )
                    yield place.error(path, "the dequeue period is zero", found="0", allowed="more than 0")


def periods_are_positive(place: QueuePlace) -> Iterator[Problem]:
    """Check that the periods of statistics and statuses are above zero, and that statistics are updated at all."""
    for step, period in (
        ("statistics/statistics_sampling_period", place.queue.statistics.sampling_period_ns),
        ("entity_monitoring/status_publication_period", place.queue.monitoring.status_publication_period_ns),
    ):
        if period == 0:
            yield place.error(step, f"<{step.rpartition('/')[2]}> is zero", found="0", allowed="more than 0")
    if place.queue.statistics.sampling_period_ns == INFINITE_NS:
        step = "statistics/statistics_sampling_period"
        yield place.warning(step, "statistics are never updated", found="infinite", allowed="a finite period")


def sampling_is_shorter_than_publication(place: QueuePlace) -> Iterator[Problem]:
    """Check that statistics are sampled more often than the status is published, as [QS 3.3.4.3.1] recommends."""
    sampling = place.queue.statistics.sampling_period_ns
    publication = place.queue.monitoring.status_publication_period_ns
    if 0 < publication <= sampling < INFINITE_NS:
        given = place.given("statistics/statistics_sampling_period")
        step = "statistics/statistics_sampling_period" if given else "entity_monitoring/status_publication_period"
        yield place.warning(
            step,
            "statistics are not sampled more often than the status is published",
            found=f"sampled every {format_duration(sampling)}, published every {format_duration(publication)}",
            allowed=f"a sampling period below {format_duration(publication)}",
        )
