"""The options of `create-queue`, one for each row of the configuration tables that declares one [QS Table 3.14]."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.config.form import Row, Setting, SettingPlace
    from qsctl.core.queue.settings import SharedReaderQueueSettings
    from qsctl.instant import Nanoseconds

DEFAULT_TYPE: Final = "DDS::String"
MAX_NAME_LENGTH: Final = 255
"""The longest name: a queue's full name has three of them, at most 255 octets on the wire."""

MAX_TOPIC_LENGTH: Final = 255
_NAME: Final = re.compile(r"[A-Za-z0-9_.]+")
_TYPE: Final = re.compile(r"[A-Za-z0-9_.:]{1,255}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9_.:/-]+")
_AS_DEAD_LETTER: Final = "as_dead_letter"
_AS_DEAD_LETTER_OPTION: Final = inspect.Parameter(
    _AS_DEAD_LETTER,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--as-dead-letter", help="Create the subscriber's dead-letter queue.", rich_help_panel="Delivery"),
    ],
)


@cache
def _parameters() -> tuple[inspect.Parameter, ...]:
    """Return a parameter for each option of the tables; cached, since programs and tests create many queues."""
    return tuple(_made_parameters())


def _made_parameters() -> Iterator[inspect.Parameter]:
    from qsctl.config.form import settings_in
    from qsctl.config.tables.queue import QUEUE

    for place in settings_in(QUEUE):
        option, value = place.setting.option, place.setting.value
        if option is None:
            continue
        kind: Any = str
        if option.given is not None:
            kind = bool
        elif option.words:
            kind = Literal[tuple(option.words)]
        elif value.low is not None:
            kind = int
        info = typer.Option(
            option.name,
            help=f"{option.help or place.setting.help}",
            metavar=option.metavar,
            show_default=kind is bool or _default(place),
            min=value.low if kind is int else None,
            max=value.high if kind is int else None,
            rich_help_panel=option.panel,
        )
        flag = kind is bool
        yield inspect.Parameter(
            _parameter(place.setting),
            inspect.Parameter.KEYWORD_ONLY,
            default=False if flag else None,
            annotation=Annotated[kind if flag else kind | None, info],
        )


def _default(place: SettingPlace) -> str:
    option, default = place.setting.option, place.default
    assert option is not None
    return option.default or ("none" if default is None else place.setting.value.write(default))


def _parameter(setting: Setting) -> str:
    """Return the name of the parameter that receives an option's value."""
    return setting.option.name.removeprefix("--").replace("-", "_") if setting.option else ""


class QueueOptions(OptionGroup):
    """The options of `create-queue` that were given, by parameter; omitted ones have their defaults."""

    @classmethod
    def parameters(cls) -> tuple[inspect.Parameter, ...]:
        """Return a parameter for each option of the tables, and `--as-dead-letter`."""
        return (*_parameters(), _AS_DEAD_LETTER_OPTION)

    def __init__(self, **given: Any) -> None:
        self._given: Mapping[str, Any] = {
            name: value for name, value in given.items() if value is not None and value is not False
        }

    def given(self) -> list[str]:
        """Return the given options, as the user types them."""
        return [f"--{name.replace('_', '-')}" for name in self._given]

    def settings(self, name: str) -> SharedReaderQueueSettings:
        """Return the queue's own settings; inherited ones are added where the queue is created.

        Raises:
            UsageError: the name or a duration is not valid, or two options contradict each other.
        """
        from qsctl.config.tables.queue import DEAD_LETTER_QUEUE, QUEUE
        from qsctl.core.queue.settings import SharedReaderQueueSettings

        check_name(name, "queue")
        self._check()
        form = DEAD_LETTER_QUEUE if _AS_DEAD_LETTER in self._given else QUEUE
        values = dict(self._values(form.rows))
        topic = check_topic(values.get("topic_name", name)) if "topic_name" in values else name
        values |= {"name": name, "topic_name": topic, "is_dead_letter": form is DEAD_LETTER_QUEUE}
        if form is QUEUE:
            values.setdefault("type_name", DEFAULT_TYPE)
        for option, type_name in (("--type", values.get("type_name")), ("--reply-type", values.get("reply_type"))):
            if type_name and not _TYPE.fullmatch(type_name):
                raise UsageError(
                    f"{option} {type_name!r} is not a type",
                    remedy="A type has letters, digits, '_' and '::', as in A::Order.",
                )
        if values.get("reply_type"):
            values["reply_topic"] = f"{topic}Reply"
        return SharedReaderQueueSettings(**values)

    def _values(self, rows: tuple[Row, ...]) -> Iterator[tuple[str, Any]]:
        """Yield each field that the options set, with inner dataclasses constructed."""
        from qsctl.config.form import Element, Setting

        for row in rows:
            if isinstance(row, Setting) and _parameter(row) in self._given:
                yield row.field, _value(row, self._given[_parameter(row)])
            elif isinstance(row, Element):
                inner = dict(self._values(row.rows))
                if row.makes is None:
                    yield from inner.items()
                elif inner:
                    yield row.field, row.makes(**inner)

    def _check(self) -> None:
        high, low = self._given.get("high_watermark"), self._given.get("low_watermark")
        if high is not None and low is not None and low > high:
            raise UsageError(
                f"--low-watermark {low} lies above --high-watermark {high}", remedy="The low one is the smaller."
            )
        if (high is not None or low is not None) and all(
            self._given.get(limit, -1) < 0 for limit in ("max_count", "max_bytes")
        ):
            raise UsageError(
                "a watermark is a percentage of a limit and the queue has none",
                remedy="Add --max-count or --max-bytes.",
            )
        if _AS_DEAD_LETTER in self._given:
            from qsctl.config.form import settings_in
            from qsctl.config.tables.queue import DEAD_LETTER_QUEUE

            known = {_parameter(place.setting) for place in settings_in(DEAD_LETTER_QUEUE)} | {_AS_DEAD_LETTER}
            for name, option in zip(self._given, self.given(), strict=True):
                if name not in known:
                    raise UsageError(
                        f"a dead-letter queue takes no {option}", remedy=f"Leave {option} or --as-dead-letter out."
                    )


def _value(row: Setting, given: Any) -> Any:
    """Return the value of a setting, converted from an option's text."""
    from qsctl.declared.values import DURATION, LIMIT

    option = row.option
    assert option is not None
    if option.given is not None:
        return option.given
    if option.words:
        return option.words[given]
    if row.value is DURATION:
        return _duration(option.name, given)
    if row.value is LIMIT and given == 0:
        raise UsageError(f"{option.name} 0 leaves no room", remedy="Give at least 1, or -1 for no limit.")
    return given


def check_name(name: str, kind: str) -> str:
    """Return the name unchanged, after checking that XML and resource identifiers can contain it.

    Raises:
        UsageError: it is empty, too long, or has other characters than letters, digits, `_` and `.`.
    """
    if not name:
        raise UsageError(f"the {kind} has no name", remedy="Give NAME, or a name attribute in the XML.")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a name for a {kind}", remedy="A name has letters, digits, '_' and '.' only.")
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(
            f"the name of the {kind} has {len(name)} characters", remedy=f"It may have {MAX_NAME_LENGTH}; shorten it."
        )
    return name


def check_topic(topic: str) -> str:
    """Return the topic unchanged, after checking it.

    Raises:
        UsageError: it is empty, too long, or has characters that a topic or `TOPIC@SUBSCRIBER` cannot have.
    """
    if not _TOPIC.fullmatch(topic) or len(topic) > MAX_TOPIC_LENGTH:
        raise UsageError(
            f"--topic {topic[:60]!r} is not a topic",
            remedy=f"A topic has letters, digits and _ . : / - and at most {MAX_TOPIC_LENGTH} of them.",
        )
    return topic


def _duration(option: str, text: str) -> Nanoseconds:
    from qsctl.instant import parse_duration

    try:
        duration_ns = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", remedy=error.remedy) from None
    if duration_ns == 0:
        raise UsageError(f"{option} 0 leaves no time", remedy="Give a duration such as 30s, or infinite.")
    return duration_ns
