"""A queue's configuration from the options of `create-queue` (manual, Tables 3.14 and 3.15)."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.core.queue.settings import SharedReaderQueueSettings
    from qsctl.instant import Nanoseconds

DEFAULT_TYPE: Final = "DDS::String"
MAX_NAME_LENGTH: Final = 100
"""Three names and what goes between make a queue's full name, of at most 255 on the wire, and part of a file name."""

MAX_TOPIC_LENGTH: Final = 255
_NAME: Final = re.compile(r"[A-Za-z0-9_.]+")
_TYPE: Final = re.compile(r"[A-Za-z0-9_.:]{1,255}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9_.:/-]+")


class WhenFull(StrEnum):
    """What becomes of a sample that finds the queue full (section 2.15.4)."""

    REJECT = "reject"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What was asked for; None: not given, so the manual's default holds."""

    topic: str | None = None
    type_name: str | None = None
    reply_type: str | None = None
    session: str | None = None
    persistent: bool | None = None
    max_count: int | None = None
    max_bytes: int | None = None
    high_watermark: int | None = None
    low_watermark: int | None = None
    when_full: WhenFull | None = None
    lifespan: str | None = None
    max_delivery_retries: int | None = None
    response_timeout: str | None = None
    unacked_threshold: int | None = None
    consumer_feedback: bool | None = None
    dead_letter: str | None = None
    as_dead_letter: bool | None = None

    def given(self) -> list[str]:
        """The options that were given, as they are typed."""
        names = {field.name: field.name.replace("_", "-") for field in fields(self)} | {"type_name": "type"}
        return [f"--{names[field.name]}" for field in fields(self) if getattr(self, field.name) is not None]

    def check(self, name: str) -> None:
        """Refuse what cannot become a queue.

        Raises:
            UsageError: the name or a duration is wrong, or two options contradict each other.
        """
        self.settings(name)

    def settings(self, name: str) -> SharedReaderQueueSettings:
        """The queue's own settings; what it inherits is added where it is created.

        Raises:
            UsageError: the name or a duration is wrong, or two options contradict each other.
        """
        from qsctl.core.queue.settings import (
            UNLIMITED,
            DistributionSettings,
            PersistenceKind,
            PersistenceSettings,
            RedeliverySettings,
            ReplacementKind,
            ResourceLimitSettings,
            SharedReaderQueueSettings,
        )

        check_name(name, "queue")
        self._check()
        topic = name if self.topic is None else check_topic(self.topic)
        for option, type_name in (("--type", self.type_name), ("--reply-type", self.reply_type)):
            if type_name is not None and not _TYPE.fullmatch(type_name):
                raise UsageError(
                    f"{option} {type_name!r} is no type",
                    remedy="A type has letters, digits, '_' and '::', as in A::Order.",
                )
        replacement = {
            WhenFull.REJECT: ReplacementKind.REJECT_WITHOUT_REPLACEMENT,
            WhenFull.WAIT: ReplacementKind.WAIT_WITHOUT_REPLACEMENT,
        }
        return SharedReaderQueueSettings(
            name=name,
            topic_name=topic,
            type_name="" if self.as_dead_letter else self.type_name or DEFAULT_TYPE,
            reply_type=self.reply_type or "",
            reply_topic=f"{topic}Reply" if self.reply_type else "",
            session=self.session or "",
            dead_letter_queue=self.dead_letter or "",
            is_dead_letter=bool(self.as_dead_letter),
            distribution=DistributionSettings(
                unacked_threshold=UNLIMITED if self.unacked_threshold is None else self.unacked_threshold,
                allow_consumer_feedback=bool(self.consumer_feedback),
            ),
            lifespan_ns=_duration("--lifespan", self.lifespan),
            redelivery=RedeliverySettings(
                self.max_delivery_retries or 0, _duration("--response-timeout", self.response_timeout)
            ),
            persistence=PersistenceSettings(
                PersistenceKind.PERSISTENT if self.persistent else PersistenceKind.VOLATILE
            ),
            limits=ResourceLimitSettings(
                max_count=UNLIMITED if self.max_count is None else self.max_count,
                max_in_memory_bytes=UNLIMITED if self.max_bytes is None else self.max_bytes,
                high_watermark_percent=self.high_watermark,
                low_watermark_percent=self.low_watermark,
                replacement=replacement[self.when_full or WhenFull.REJECT],
            ),
        )

    def _check(self) -> None:
        for option, count in (("--max-count", self.max_count), ("--max-bytes", self.max_bytes)):
            if count == 0:
                raise UsageError(f"{option} 0 leaves no room", remedy="Give at least 1, or -1 for no limit.")
        high, low = self.high_watermark, self.low_watermark
        if high is not None and low is not None and low > high:
            raise UsageError(
                f"--low-watermark {low} lies above --high-watermark {high}", remedy="The low one is the smaller."
            )
        if (high is not None or low is not None) and (self.max_count or -1) < 0 and (self.max_bytes or -1) < 0:
            raise UsageError(
                "a watermark is a percentage of a limit and the queue has none",
                remedy="Add --max-count or --max-bytes.",
            )
        if self.as_dead_letter:
            for option, value in (
                ("--type", self.type_name),
                ("--reply-type", self.reply_type),
                ("--dead-letter", self.dead_letter),
            ):
                if value is not None:
                    raise UsageError(
                        f"a dead-letter queue takes no {option}", remedy=f"Leave {option} or --as-dead-letter out."
                    )


def check_name(name: str, kind: str) -> str:
    """The name itself, when XML and resource identifiers can carry it.

    Raises:
        UsageError: it is empty, too long, or has other characters than letters, digits, `_` and `.`.
    """
    if not name:
        raise UsageError(f"the {kind} has no name", remedy="Give NAME, or a name attribute in the XML.")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a {kind}", remedy="A name has letters, digits, '_' and '.' only.")
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(
            f"the name of the {kind} has {len(name)} characters", remedy=f"It may have {MAX_NAME_LENGTH}; shorten it."
        )
    return name


def check_topic(topic: str) -> str:
    """The topic itself, when it can be one.

    Raises:
        UsageError: it is empty, too long, or has characters that a topic or `TOPIC@SUBSCRIBER` cannot have.
    """
    if not _TOPIC.fullmatch(topic) or len(topic) > MAX_TOPIC_LENGTH:
        raise UsageError(
            f"--topic {topic[:60]!r} is no topic",
            remedy=f"A topic has letters, digits and _ . : / - and at most {MAX_TOPIC_LENGTH} of them.",
        )
    return topic


def _duration(option: str, text: str | None) -> Nanoseconds:
    from qsctl.instant import INFINITE_NS, parse_duration

    if text is None:
        return INFINITE_NS
    try:
        duration_ns = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", remedy=error.remedy) from None
    if duration_ns == 0:
        raise UsageError(f"{option} 0 leaves no time", remedy="Give a duration such as 30s, or infinite.")
    return duration_ns
