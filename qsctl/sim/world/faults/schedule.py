"""A schedule: timed actions on a world as lines of text, written by hand or drawn as random faults.

    # what it shows
    set world/replicas=5
    await master 1
    write producer-1
    await stored producer-1:1 at 1,2
    crash 1 at after-sync
    at 4s start 1

Lines are applied in their order. A line that begins with `at DURATION` waits for that instant of the run, one with
`after DURATION` for this long after the line before it. `await CONDITION` waits until the condition holds; if it does
not within the time given by `within DURATION` (default 10 s), the schedule ends as unmet. `set PATH=VALUE` changes the
scenario, as `--set` does. The verbs and conditions are those of `vocabulary.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qsctl.declared.problems import ProblemList
from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import SECOND_NS, Nanoseconds, format_duration, parse_duration
from qsctl.sim.world.faults.vocabulary import CONDITIONS, VERBS, Condition, Usage, Verb

WITHIN_NS: Final[Nanoseconds] = 10 * SECOND_NS
"""Default time to wait for a condition."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line: exactly one of `verb` and `condition` is set; without `at_ns` and `after_ns` it is due at once."""

    verb: Verb | None = None
    condition: Condition | None = None
    arguments: tuple[str, ...] = ()
    at_ns: Nanoseconds | None = None
    after_ns: Nanoseconds | None = None
    within_ns: Nanoseconds = WITHIN_NS

    @property
    def text(self) -> str:
        """Return the line as it is written in a schedule."""
        words = []
        if self.at_ns is not None:
            words += ["at", format_duration(self.at_ns)]
        if self.after_ns is not None:
            words += ["after", format_duration(self.after_ns)]
        if self.condition is not None:
            words += ["await", str(self.condition), *_with_between(CONDITIONS[self.condition], self.arguments)]
            if self.within_ns != WITHIN_NS:
                words += ["within", format_duration(self.within_ns)]
        elif self.verb is not None:
            words += [str(self.verb), *_with_between(VERBS[self.verb], self.arguments)]
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of a schedule in order, the scenario values that it sets, and its leading comments."""

    steps: tuple[Step, ...] = ()
    overrides: dict[str, str] = field(default_factory=dict)
    comments: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the content of the schedule's file."""
        lines = [f"# {each}".rstrip() for each in self.comments]
        lines += [f"set {path}={value}" for path, value in self.overrides.items()]
        return "\n".join([*lines, *(step.text for step in self.steps)]) + "\n"


def read_schedule(path: Path) -> Schedule:
    """Read a schedule from a file.

    Raises:
        InvalidInput: the file cannot be read, or is not text.
        InvalidFile: lists every invalid line with the allowed words.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text in UTF-8"
        raise InvalidInput(f"{path}: the schedule cannot be read: {reason}", remedy="Name a file of lines.") from None
    return parse_schedule(text.splitlines(), str(path))


def parse_schedule(lines: Iterable[str], name: str) -> Schedule:
    """Parse the lines of a schedule; `name` identifies it in error messages.

    Raises:
        InvalidFile: lists every invalid line with the allowed words.
    """
    steps: list[Step] = []
    overrides: dict[str, str] = {}
    comments: list[str] = []
    problems = ProblemList(name)
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if words[0].startswith("#"):
            if not steps:
                comments.append(line.strip().removeprefix("#").strip())
            continue
        try:
            if words[0] == "set":
                path, value = _override(line.strip(), is_first=not steps)
                overrides[path] = value
            else:
                steps.append(_step(words))
        except _Meaningless as error:
            problems.add(number, "this line of the schedule is not a fault", error.found, error.allowed)
    problems.check("the schedule")
    return Schedule(tuple(steps), overrides, tuple(comments))


class _Meaningless(Exception):
    """An invalid part of a line: the text found, and the allowed one."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(found)
        self.found = found
        self.allowed = allowed


def _override(line: str, *, is_first: bool) -> tuple[str, str]:
    path, equals, value = line.removeprefix("set").partition("=")
    if not equals or not is_first:
        raise _Meaningless(line, "set PATH=VALUE, before the first step")
    return path.strip(), value.strip()


def _step(words: list[str]) -> Step:
    at_ns = after_ns = None
    if words[0] in {"at", "after"}:
        duration = _duration(words[1] if len(words) > 1 else "")
        if words[0] == "at":
            at_ns = duration
        else:
            after_ns = duration
        words = words[2:]
    word, rest = (words[0], words[1:]) if words else ("", [])
    if word == "await":
        within_ns = WITHIN_NS
        if "within" in rest:
            at = rest.index("within")
            within_ns = _duration(" ".join(rest[at + 1 :]))
            rest = rest[:at]
        condition, rest = (rest[0], rest[1:]) if rest else ("", [])
        if condition not in set(Condition):
            raise _Meaningless(condition, ", ".join(Condition))
        known = Condition(condition)
        arguments = _arguments(CONDITIONS[known], condition, rest)
        return Step(None, known, arguments, at_ns, after_ns, within_ns)
    if word not in set(Verb):
        raise _Meaningless(word, f"await, set, {', '.join(Verb)}")
    verb = Verb(word)
    return Step(verb, None, _arguments(VERBS[verb], word, rest), at_ns, after_ns)


def _arguments(usage: Usage, word: str, words: Sequence[str]) -> tuple[str, ...]:
    whole = f"{word} {usage.text}".strip()
    found = list(words)
    if usage.between and len(found) > 1:
        if found[1] != usage.between:
            raise _Meaningless(" ".join([word, *words]), whole)
        del found[1]
    if not usage.required_count <= len(found) <= len(usage.arguments):
        raise _Meaningless(" ".join([word, *words]), whole)
    for argument, text in zip(usage.arguments, found, strict=False):
        if not argument.accepts(text):
            raise _Meaningless(text, argument.allowed)
    return tuple(found)


def _with_between(usage: Usage, arguments: Sequence[str]) -> Iterator[str]:
    for number, each in enumerate(arguments):
        if number == 1 and usage.between:
            yield usage.between
        yield each


def _duration(text: str) -> Nanoseconds:
    try:
        return parse_duration(text)
    except UsageError:
        raise _Meaningless(text, "a duration, as in 250ms") from None
