"""Conversion of a NetConfig's keyed lists to processes, threads and destinations.

Decides the names of keys, as published programs of the engine's users have them; where two spellings are in use, both
are read. Keys that do not concern queues, routes and load are ignored, since new releases add keys.
"""

from __future__ import annotations

from typing import Final

from qsctl.declared.problems import ProblemList
from qsctl.netconfig.model import (
    NetDestination,
    NetDetail,
    NetDetailKind,
    NetProcedure,
    NetProcess,
    NetProtocol,
    NetRemote,
    NetRoute,
    NetThread,
    StackPlace,
)
from qsctl.netconfig.tcl import TclKeyedList

_YES: Final = frozenset({"1", "ON", "YES", "TRUE", "ENABLED"})
_NO: Final = frozenset({"0", "OFF", "NO", "FALSE", "DISABLED"})
_LOGGING: Final = "RECOVER"
"""The text that keys of database logging contain, such as USERECOVERDB and RECOVERYDB (our reading)."""
_STACK_KEYS: Final = frozenset({"ARGS", "PROCS", "PROCSCONTROL"})
_KINDS: Final = {each.value: each for each in NetDetailKind}


def process_of(name: str, line: int) -> NetProcess:
    """Make a process."""
    return NetProcess(name, line)


def remote_of(name: str, line: int, keyed: TclKeyedList) -> NetRemote:
    """Make a destination at another site from its keyed list."""
    thread = keyed.value("THREAD") or keyed.value("CONN") or keyed.value("DEST")
    return NetRemote(name, keyed.value("SITE"), thread, line)


def thread_of(name: str, line: int, keyed: TclKeyedList, found: ProblemList) -> NetThread:
    """Make a thread from its keyed list; add the parts that cannot be parsed to the problems."""
    path = f"protocol {name}"
    process = keyed.value("PROCESSNAME") or keyed.value("PROCESS")
    if not process:
        found.add(line, "the thread has no process", "", "{ PROCESSNAME name }", path=path)
    protocol = keyed.keyed("PROTOCOL")
    stacks = keyed.keyed("SMS")
    logged = next((key for key in keyed.entries if _LOGGING in key), None)
    return NetThread(
        name,
        process,
        line,
        NetProtocol(
            protocol.value("TYPE"),
            protocol.value("HOST"),
            protocol.value("PORT"),
            _flag(protocol, "ISSERVER", found, path),
            protocol.value("IBDIR"),
            protocol.value("OBDIR"),
        ),
        is_started=_flag(keyed, "AUTOSTART", found, path) is not False,
        is_outbound_only=_flag(keyed, "OUTBOUNDONLY", found, path) is True,
        works_as_inbound=_flag(keyed, "OBWORKASIB", found, path) is True,
        is_logged=None if logged is None else _flag(keyed, logged, found, path),
        awaits_reply=_flag(keyed, "AWAITREPLIES", found, path),
        stacks={place: found_stack for place in StackPlace if (found_stack := _stack(stacks, place.value))},
        routes=tuple(_route(each, found, path) for each in keyed.list_of_keyed("DATAXLATE")),
        reply_routes=tuple(_route(each, found, path) for each in keyed.list_of_keyed("REPLYXLATE")),
    )


def _flag(keyed: TclKeyedList, key: str, found: ProblemList, path: str) -> bool | None:
    """Return the value of a switch; None if the key is missing or empty."""
    text = keyed.value(key).upper()
    if not text:
        return None
    if text not in _YES | _NO:
        found.add(keyed.line_of(key), f"{key} is not understood", text, "1 or 0, ON or OFF", path=path)
    return text in _YES


def _route(keyed: TclKeyedList, found: ProblemList, path: str) -> NetRoute:
    name = keyed.value("TRXID")
    if not name:
        found.add(keyed.line, "a route has no transaction id", "", "{ TRXID name }", path=path)
    details = tuple(_detail(each, found, f"{path}, route {name}") for each in keyed.list_of_keyed("ROUTE_DETAILS"))
    return NetRoute(name, details, _flag(keyed, "WILDCARD", found, path) is True, keyed.line)


def _detail(keyed: TclKeyedList, found: ProblemList, path: str) -> NetDetail:
    text = keyed.value("TYPE").lower()
    kind = _KINDS.get(text)
    if kind is None:
        allowed = ", ".join(_KINDS)
        found.add(keyed.line_of("TYPE"), "the type of a route detail is not understood", text, allowed, path=path)
    pre = _stack(keyed, "PREPROCS") or _stack(keyed, "PROCS")
    translations = [keyed.value(key) for key in ("XLATE", "XSLT") if keyed.value(key)]
    post = _stack(keyed, "POSTPROCS")
    for item in keyed.list_of_keyed("CHAIN"):
        translations += [item.value(key) for key in ("XLATE", "XSLT") if item.value(key)]
        # Procedures before the first translation are pre-procedures; all later ones run after the last translation.
        procedures = (*_stack(item, "PREPROCS"), *_stack(item, "PROCS"))
        if len(translations) <= 1:
            pre = (*pre, *procedures)
        else:
            post = (*post, *procedures)
        post = (*post, *_stack(item, "POSTPROCS"))
    return NetDetail(
        kind,
        tuple(NetDestination(name, line) for name, line in keyed.words("DEST")),
        pre,
        tuple(translations),
        post,
        _flag(keyed, "DETAILS_ENABLED", found, path) is not False,
        keyed.line,
    )


def _stack(keyed: TclKeyedList, key: str) -> tuple[NetProcedure, ...]:
    """Parse a stack of procedures: a list of names, or a keyed list with PROCS, ARGS and PROCSCONTROL."""
    if key not in keyed:
        return ()
    words = keyed.words(key)
    if not words:
        return ()
    first = words[0][0].split(maxsplit=1)
    if not first or first[0].upper() not in _STACK_KEYS:
        return tuple(NetProcedure(name, line) for name, line in words if name.strip())
    inner = keyed.keyed(key)
    arguments = [text for text, _ in inner.words("ARGS")]
    control = [text.upper() for text, _ in inner.words("PROCSCONTROL")]
    return tuple(
        NetProcedure(
            name.strip(),
            line,
            arguments[at] if at < len(arguments) else "",
            not (at < len(control) and control[at] in _NO),
        )
        for at, (name, line) in enumerate(inner.words("PROCS"))
        if name.strip()
    )
