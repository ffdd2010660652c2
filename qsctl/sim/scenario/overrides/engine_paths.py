"""Short paths into an integration engine: a thread by its name, and what no attribute of its file can change.

`thread[NAME]/…` is the thread in whatever process it is; `thread[NAME]/process` moves it to another process,
`thread[NAME]/outage` and `thread[NAME]/stop` give it one interval instead of those that it has, as `10min+30min`: its
beginning and its duration; `none` takes them away. `procedure[NAME]/takes` is how long all procedures and translations
of a name take, at whichever thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import INFINITE_NS
from qsctl.sim.scenario.forms.values import FINITE_DURATION
from qsctl.sim.scenario.parts.client import ClientInterval
from qsctl.sim.scenario.parts.engine import (
    Engine,
    EngineDetail,
    EngineInbound,
    EngineOutbound,
    EngineProcedure,
    EngineProcess,
    EngineRoute,
    EngineThread,
    EngineTranslation,
)

_THREAD: Final = re.compile(r"(?:engine/)?thread\[([^\]]+)\]/(.+)")
_NAMED: Final = re.compile(r"(?:engine/)?(?:procedure|translation)\[([^\]]+)\]/takes")
NO_INTERVAL: Final = "none"
_OF_THREADS: Final = ("process", "outage", "stop")


def whole_engine_path(engine: Engine, path: str) -> str:
    """Return the whole path of a thread's short one; any other path as it is.

    Raises:
        UsageError: there is no thread of that name.
    """
    found = _THREAD.fullmatch(path)
    if found is None:
        return path
    process = _process_of(engine, found[1], path)
    return f"engine/process[{process.name}]/thread[{found[1]}]/{found[2]}"


def with_engine_value(engine: Engine, path: str, text: str) -> Engine | None:
    """Return an engine with a value that only a short path sets; None: the path is another one.

    Raises:
        UsageError: the thread or the procedure does not exist.
        InvalidInput: the value cannot be read, or does not name a process.
    """
    named = _NAMED.fullmatch(path)
    if named is not None:
        return _with_duration(engine, named[1], path, text)
    found = _THREAD.fullmatch(path)
    if found is None or found[2] not in _OF_THREADS:
        return None
    name, what = found[1], found[2]
    if what == "process":
        return moved(engine, name, text.strip(), path)
    intervals = _intervals(path, text)
    process = _process_of(engine, name, path)

    def changed(thread: EngineThread) -> EngineThread:
        if what == "stop":
            return replace(thread, stops=intervals)
        if thread.outbound is None:
            raise UsageError(f"{path!r}: thread {name} has no outbound side", remedy="Only a receiver has outages.")
        return replace(thread, outbound=replace(thread.outbound, outages=intervals))

    threads = tuple(changed(each) if each.name == name else each for each in process.threads)
    return _with_process(engine, replace(process, threads=threads))


def moved(engine: Engine, name: str, to: str, path: str = "") -> Engine:
    """Return an engine with a thread moved to another process, as the last of its threads.

    Raises:
        UsageError: the thread does not exist.
        InvalidInput: the process does not exist.
    """
    source = _process_of(engine, name, path or name)
    if to not in {each.name for each in engine.processes}:
        known = ", ".join(each.name for each in engine.processes)
        raise InvalidInput(f"{path or name}: {to!r} is not a process", remedy=f"There are {known}.")
    if source.name == to:
        return engine
    thread = next(each for each in source.threads if each.name == name)
    without = replace(source, threads=tuple(each for each in source.threads if each is not thread))
    target = next(each for each in engine.processes if each.name == to)
    return _with_process(_with_process(engine, without), replace(target, threads=(*target.threads, thread)))


def thread_of(engine: Engine, path: str) -> object:
    """Return the thread that a short path names, or else the engine."""
    found = _THREAD.fullmatch(path)
    threads = [thread for process in engine.processes for thread in process.threads]
    return next((each for each in threads if found is not None and each.name == found[1]), engine)


def engine_paths(engine: Engine) -> Iterator[str]:
    """Yield the paths that this module adds to those of the table, for shell completion."""
    names: dict[str, None] = {}
    for process in engine.processes:
        for thread in process.threads:
            yield f"thread[{thread.name}]/process"
            yield f"thread[{thread.name}]/stop"
            if thread.outbound is not None:
                yield f"thread[{thread.name}]/outage"

    def noted(each: Any) -> Any:
        if each.name:
            names[each.name] = None
        return each

    _map_named(engine, noted)
    yield from (f"procedure[{name}]/takes" for name in names)


def _process_of(engine: Engine, name: str, path: str) -> EngineProcess:
    for process in engine.processes:
        if any(thread.name == name for thread in process.threads):
            return process
    known = ", ".join(thread.name for process in engine.processes for thread in process.threads)
    raise UsageError(f"{path!r}: there is no thread {name!r}", remedy=f"There are {known}.")


def _with_process(engine: Engine, changed: EngineProcess) -> Engine:
    processes = tuple(changed if each.name == changed.name else each for each in engine.processes)
    return replace(engine, processes=processes)


def _intervals(path: str, text: str) -> tuple[ClientInterval, ...]:
    word = text.strip()
    if word == NO_INTERVAL:
        return ()
    start, plus, duration = word.partition("+")
    wrong = InvalidInput(
        f"{path}: {word!r} is not an interval", remedy="Write START+DURATION, as in 10min+30min, or none."
    )
    if not plus:
        raise wrong
    try:
        return (ClientInterval(FINITE_DURATION.parse(start.strip()), FINITE_DURATION.parse(duration.strip())),)
    except InvalidInput:
        raise wrong from None


def _with_duration(engine: Engine, name: str, path: str, text: str) -> Engine:
    try:
        takes_ns = FINITE_DURATION.parse(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}") from None
    assert takes_ns < INFINITE_NS
    found = False
    names: set[str] = set()

    def changed(each: Any) -> Any:
        nonlocal found
        names.add(each.name)
        if each.name != name:
            return each
        found = True
        return replace(each, takes_ns=takes_ns)

    made = _map_named(engine, changed)
    if not found:
        known = ", ".join(sorted(names - {""})) or "none has a name"
        raise UsageError(f"{path!r}: there is no procedure or translation {name!r}", remedy=f"There are {known}.")
    return made


def _map_named(engine: Engine, change: Callable[[Any], Any]) -> Engine:
    """Return an engine with a function applied to each procedure and translation."""

    def stack(given: tuple[EngineProcedure, ...]) -> tuple[EngineProcedure, ...]:
        return tuple(map(change, given))

    def detail(each: EngineDetail) -> EngineDetail:
        translations: tuple[EngineTranslation, ...] = tuple(map(change, each.translations))
        return replace(each, pre=stack(each.pre), translations=translations, post=stack(each.post))

    def route(each: EngineRoute) -> EngineRoute:
        return replace(each, details=tuple(map(detail, each.details)))

    def inbound(each: EngineInbound | None) -> EngineInbound | None:
        if each is None:
            return None
        routes = tuple(map(route, each.routes))
        replies = stack(each.reply_procedures)
        return replace(each, procedures=stack(each.procedures), reply_procedures=replies, routes=routes)

    def outbound(each: EngineOutbound | None) -> EngineOutbound | None:
        return None if each is None else replace(each, procedures=stack(each.procedures))

    processes = tuple(
        replace(
            process,
            threads=tuple(
                replace(thread, inbound=inbound(thread.inbound), outbound=outbound(thread.outbound))
                for thread in process.threads
            ),
        )
        for process in engine.processes
    )
    return replace(engine, processes=processes)
