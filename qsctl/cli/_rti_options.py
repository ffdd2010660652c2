"""The options of [QS Table 4.1], such as `-cfgFile`, converted into those of qsctl before the command line is parsed.

Decides which single-dash words are such options: only those of `qsctl serve`, so that scripts that start RTI's service
work unchanged. Another single-dash word of several letters is refused by its whole name; parsed letter by letter it
would be reported as `-b`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from qsctl.errors import UsageError

RTI_OPTIONS: Final[Mapping[str, str]] = {
    "-appName": "--app-name",
    "-cfgFile": "--cfg-file",
    "-cfgName": "--config-name",
    "-cfgRemote": "--cfg-remote",
    "-cfgRemoteTimeout": "--cfg-remote-timeout",
    "-daemon": "--daemon",
    "-domainIdBase": "--domain-id-base",
    "-heapSnapshotPeriod": "--heap-snapshot-period",
    "-heapSnapshotDir": "--heap-snapshot-dir",
    "-help": "--help",
    "-remoteAdministrationDomainId": "--remote-administration-domain-id",
    "-persistentFilePrefix": "--persistent-file-prefix",
    "-persistentStoragePath": "--persistent-storage-path",
    "-var": "--var",
    "-verbosity": "--verbosity",
    "-version": "--version",
}

_COMMAND: Final = "serve"
_FLAGS: Final = frozenset(
    {"--cfg-remote", "--daemon", "--format-help", "--help", "--log-json", "--print-unit", "--version", "-h"}
)
"""The options of `qsctl serve` that have no value."""

_SINGLE_DASH_WORD: Final = re.compile(r"-[A-Za-z][A-Za-z-]+")
_FORMAT: Final = re.compile(r"-o(table|jsonl?|yaml|csv|xml)")


def in_our_spelling(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `qsctl` with RTI's options of `serve` in qsctl's spelling.

    Option values, and everything after `--`, are unchanged.

    Raises:
        UsageError: a single-dash word of several letters is not one of those options.
    """
    if not arguments or arguments[0] != _COMMAND:
        return list(arguments)
    ours: list[str] = []
    ended = is_value = False
    for argument in arguments:
        ended = ended or argument == "--"
        name, equals, value = argument.partition("=")
        known = None if ended else RTI_OPTIONS.get(name)
        if known is None and not ended and not is_value:
            _check_known(name, argument)
        ours.append(argument if known is None else f"{known}{equals}{value}")
        is_option = not ended and (known is not None or (argument.startswith("-") and not is_value))
        is_value = is_option and not equals and (known or name) not in _FLAGS and not _FORMAT.fullmatch(argument)
    return ours


def _check_known(name: str, argument: str) -> None:
    if not _SINGLE_DASH_WORD.fullmatch(name) or _FORMAT.fullmatch(argument):
        return
    near = difflib.get_close_matches(name, RTI_OPTIONS, n=1)
    remedy = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"there is no option {name}", remedy=f"{remedy}qsctl serve --help lists the options.")
