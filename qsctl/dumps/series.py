"""Listings that a timer takes: which files they are, when each was taken, and which of them count.

Decides: what an instant is. A file's time is that in its name, as in rec-20261122-1420.txt, where all names have one;
else when it was written. Files of about the same time are one instant: a listing of each database. A file that is being
written, was cut, or is something else is left out with a note: the newest one that is whole counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from qsctl.declared.problems import InvalidFile
from qsctl.dumps.figures import EngineFigures, TakenAt
from qsctl.dumps.moments import SECOND_NS, DateOrder
from qsctl.dumps.read import read_messages
from qsctl.errors import InvalidInput, NotFound, QsctlError

_TIME_IN_NAME: Final = re.compile(
    r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?([0-2]\d|3[01])[-_.T ]?([01]\d|2[0-3])[-_.:h]?([0-5]\d)"
    r"(?:[-_.:m]?([0-5]\d))?(?!\d)"
)
_TOTAL_AT_END: Final = re.compile(
    rb"(?i)(?:total\b[^\n\d]{0,40}\d[^\n]{0,40}|\d{1,18} (?:messages?|records?|msgs?)\b[^\n]{0,80})\s*\Z"
)
_TOGETHER_NS: Final = 10 * SECOND_NS
"""Longest time between listings of different databases that count as one instant."""
_TAIL_BYTES: Final = 512
_PASSED_OVER: Final = (".gz", ".bz2", ".xz", ".zip", ".tmp", ".part", ".swp", "~")
"""Suffixes of files in a folder that are not listings."""


class ListingFile(NamedTuple):
    """A file of a series."""

    path: Path
    taken: TakenAt
    size_bytes: int


def read_series(
    sources: Sequence[Path],
    last: int,
    note: Callable[[str], None],
    *,
    is_enough: Callable[[Sequence[EngineFigures]], bool] = lambda _: False,
    encoding: str | None = None,
    order: DateOrder = DateOrder.MONTH_FIRST,
) -> list[EngineFigures]:
    """Return the newest instants of a series of listings, in the order of time.

    Args:
        sources: files and folders.
        last: how many instants are read.
        note: called with each file that is left out, and why.
        is_enough: called with the instants that were read, the newest first: whether no earlier one is needed.
        encoding: of the listings.
        order: of dates in numbers.

    Raises:
        NotFound: a file does not exist, or a folder is empty.
        InvalidFile: the only file is not understood.
        InvalidInput: none of several files is understood.
    """
    files = _files_of(sources)
    instants = list(_instants(files))
    ends_with_total = {each.path: _ends_with_total(each.path) for group in instants[-last - 1 :] for each in group}
    most = max(len(each) for each in instants[-last:])
    found: list[EngineFigures] = []
    errors: list[InvalidFile] = []
    for group in reversed(instants):
        if len(found) == last or is_enough(found):
            break
        if len(group) < most and len(instants) > 1:
            note(f"Note: {group[0].path}: the listing that belongs to it is missing; it is left out")
            continue
        look = _look_at(group, ends_with_total, errors, note, is_only=len(files) == 1, encoding=encoding, order=order)
        if look is not None:
            found.append(look)
    if not found:
        if len(files) == 1 and errors:
            raise errors[0]
        raise InvalidInput(
            f"{sources[0]}: none of {len(files)} files is a whole listing",
            remedy="Take them with hcidbdump -r -l > FILE, or qsctl engine dump DATABASE -l > FILE.",
        )
    return found[::-1]


def _look_at(
    group: Sequence[ListingFile],
    ends_with_total: dict[Path, bool],
    errors: list[InvalidFile],
    note: Callable[[str], None],
    *,
    is_only: bool,
    encoding: str | None,
    order: DateOrder,
) -> EngineFigures | None:
    """Return the figures of one instant; None if one of its files had to be omitted."""
    have_total = sum(ends_with_total.values()) * 2 > len(ends_with_total)
    look = EngineFigures(group[-1].taken, tuple(str(each.path) for each in group))
    for each in group:
        if not is_only and have_total and not ends_with_total.get(each.path, True):
            note(f"Note: {each.path}: it has no total at its end, as the others have: it is cut, or being written")
            return None
        try:
            with each.path.open("rb") as stream:
                look.add(read_messages(stream, str(each.path), encoding=encoding, order=order))
        except InvalidFile as error:
            errors.append(error)
            if is_only:
                return None
            note(f"Note: {each.path}: left out: {error.message.splitlines()[0]}")
            return None
        except OSError as error:  # a timer that keeps the newest ones has just removed it
            note(f"Note: {each.path}: left out: {error.strerror}")
            return None
    look.seal()
    return look


def _files_of(sources: Sequence[Path]) -> list[ListingFile]:
    paths: list[Path] = []
    for source in sources:
        try:
            paths += sorted(_in_folder(source)) if source.is_dir() else [source]
        except OSError as error:
            raise InvalidInput(f"{source} cannot be read: {error.strerror}", remedy="Give a readable folder.") from None
    named = [_time_in_name(path.name) for path in paths]
    files: list[ListingFile] = []
    for path, local in zip(paths, named, strict=True):
        try:
            status = path.stat()
        except FileNotFoundError:
            if path in sources:
                raise NotFound(f"there is no file {path}", remedy="Check the path.") from None
            continue
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}", remedy="Give a readable file.") from None
        taken = TakenAt.of_local(local) if local is not None and None not in named else None
        files.append(ListingFile(path, taken or TakenAt.of_clock(status.st_mtime), status.st_size))
    if not files:
        raise NotFound(f"{sources[0]} has no listings", remedy="Name the folder that a timer writes listings to.")
    return sorted(files, key=lambda each: (each.taken.utc_ns, each.path))


def _in_folder(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if not path.name.startswith(".") and not path.name.endswith(_PASSED_OVER) and path.is_file():
            yield path


def _time_in_name(name: str) -> datetime | None:
    found = _TIME_IN_NAME.search(name)
    if found is None:
        return None
    try:
        return datetime(*(int(each or 0) for each in found.groups()))  # type: ignore[arg-type]
    except ValueError:  # the 31st of a month that has none
        return None


def _instants(files: Sequence[ListingFile]) -> Iterator[list[ListingFile]]:
    """Yield the files of each instant: of one kind there is only one, and kinds differ in what is not a number."""
    group: list[ListingFile] = []
    kinds: set[str] = set()
    for each in files:
        kind = re.sub(r"\d+", "", each.path.name)
        if group and (kind in kinds or each.taken.utc_ns - group[0].taken.utc_ns > _TOGETHER_NS):
            yield group
            group, kinds = [], set()
        group.append(each)
        kinds.add(kind)
    yield group


def _ends_with_total(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            tail = stream.read(_TAIL_BYTES)
    except (OSError, QsctlError):
        return False
    return _TOTAL_AT_END.search(tail.replace(b"\0", b"")) is not None
