"""The original's command line: `-cfgFile` and its like, turned into ours before anything is parsed (Table 4.1).

Decides: which single-dash words are options of the original. Only `qsctl serve` knows them; scripts written for the
original start it unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

ORIGINAL_OPTIONS: Final[Mapping[str, str]] = {
    "-appName": "--app-name",
    "-cfgFile": "--cfg-file",
    "-cfgName": "--cfg-name",
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


def in_our_spelling(arguments: Sequence[str]) -> list[str]:
    """The arguments of `qsctl` with the original's options of `serve` in our spelling; all else as it is.

    Values are left alone: what follows an option, and what stands behind `--`.
    """
    if not arguments or arguments[0] != _COMMAND:
        return list(arguments)
    ours: list[str] = []
    ended = False
    for argument in arguments:
        ended = ended or argument == "--"
        name, equals, value = argument.partition("=")
        known = None if ended else ORIGINAL_OPTIONS.get(name)
        ours.append(argument if known is None else f"{known}{equals}{value}")
    return ours
