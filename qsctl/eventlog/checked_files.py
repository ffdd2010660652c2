"""The check of a run folder's files against the list in `run.json`: none missing, added or changed.

Every reader checks files here before it uses a row, because a flipped bit in a footer or in a page of numbers still
decodes. There are two methods. `check_all` compares a checksum over each whole file, which reads it again. Where Spark
reads a file, `check_footers` compares its footer alone, and Spark each page that it reads with the page's own checksum
(`PAGE_CHECKSUMS`): nothing is read twice, and a log in a bucket is not read by this process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from qsctl.errors import Damaged
from qsctl.eventlog.location import Location, RemotePath, listed, path_within
from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.run_folder import (
    RUN_FILE,
    FileInfo,
    RunInfo,
    RunStatus,
    describe_file,
    describe_text,
    footer_checksum,
)

TABLES: Final = ("messages", "counters", "events")
_PART: Final = re.compile(
    rf"(messages|counters|events|{'|'.join(REPLAY_TABLES)})/replication=([0-9]{{1,9}})/part-[0-9]{{1,9}}\.parquet"
)
_THREADS: Final = 2
_FOOTER_THREADS: Final = 8
"""A footer is little to read, and of a bucket long to wait for."""

PAGE_CHECKSUMS: Final = {
    "parquet.page.verify-checksum.enabled": "true", "ignoreCorruptFiles": "false", "ignoreMissingFiles": "false",
}  # fmt: skip
"""Options of Spark's reader of Parquet: a page that is not as it was written, or a file that went, is an error.

The last two are a session's settings, which may be on."""

RESTORE: Final = "Restore the folder from a copy, or run the scenario again: the command is in run.json."


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One Parquet file that `run.json` lists."""

    path: Location
    replication: int
    info: FileInfo

    def check(self) -> None:
        """Compare the file's content with its checksum.

        Raises:
            Damaged: it was changed, or cannot be read.
        """
        with _readable(self.path):
            found = describe_file(self.path, self.info.rows)
        _compare(self.path, self.info, found)

    def check_footer(self) -> None:
        """Compare the file's footer with its checksum, or the whole file where its pages have none.

        Raises:
            Damaged: it was changed, or cannot be read.
        """
        if self.info.footer is UNSET:
            self.check()
            return
        with _readable(self.path):
            found = footer_checksum(self.path)
        if found != self.info.footer:
            raise Damaged(
                f"{self.path} was changed after it was written: its footer has BLAKE2b {found}; "
                f"{RUN_FILE} lists {self.info.footer}",
                remedy=RESTORE,
            )


def listed_parts(folder: Location, info: RunInfo, table: str) -> list[ListedFile]:
    """Return the parts of a table in the order of their replications, after a check that no file is missing or added.

    Their content is not read: `ListedFile.check` does that, or `check_all`. In a run that was killed, parts of
    unfinished replications are skipped.

    Raises:
        Damaged: a part is missing, has another size, or is in the folder without being listed.
    """
    parts = []
    for name, file in info.files.items():
        place = _PART.fullmatch(name)
        if place is not None and place[1] == table:
            parts.append(ListedFile(folder / name, int(place[2]), file))
    parts.sort(key=lambda part: (part.replication, part.path.name))
    for part in parts:
        try:
            size = part.path.stat().st_size
        except OSError as error:
            raise Damaged(
                f"{part.path} is missing: {RUN_FILE} lists it with {part.info.rows} rows ({error.strerror})",
                remedy=RESTORE,
            ) from None
        if size != part.info.bytes:
            raise Damaged(f"{part.path} has {size} bytes; {RUN_FILE} lists it with {part.info.bytes}", remedy=RESTORE)
    _refuse_added(folder, info, table, {part.path for part in parts})
    return parts


def listed_file(folder: Location, info: RunInfo, table: str) -> ListedFile | None:
    """Return the file of a table of names, or None where the run has none; its content is not read.

    Raises:
        Damaged: another file is in its folder.
    """
    named = re.compile(rf"{re.escape(table)}/part-[0-9]{{1,9}}\.parquet")
    found = [ListedFile(folder / name, 0, file) for name, file in info.files.items() if named.fullmatch(name)]
    if info.status is not RunStatus.RUNNING:  # a recording that goes on writes the next one beside
        _refuse_added(folder, info, table, {each.path for each in found})
    return found[-1] if found else None


def check_all(parts: Sequence[ListedFile]) -> None:
    """Compare the parts' content with their checksums, a few at a time.

    Raises:
        Damaged: one was changed, or cannot be read.
    """
    _each(ListedFile.check, parts, _THREADS)


def check_footers(parts: Sequence[ListedFile]) -> None:
    """Compare the parts' footers, for a reader with `PAGE_CHECKSUMS`.

    Raises:
        Damaged: one was changed, or cannot be read.
    """
    _each(ListedFile.check_footer, parts, _FOOTER_THREADS)


def _each(check: Callable[[ListedFile], None], parts: Sequence[ListedFile], thread_count: int) -> None:
    if len(parts) < _THREADS or any(isinstance(part.path, RemotePath) and part.path.one_at_a_time for part in parts):
        for part in parts:
            check(part)
        return
    with ThreadPoolExecutor(thread_count) as threads:
        for _ in threads.map(check, parts):
            pass


def checked_text(folder: Location, info: RunInfo, name: str) -> str:
    """Return a small text file of the folder, such as its scenario.

    Raises:
        Damaged: it is missing or was changed.
    """
    path, listed = folder / name, info.files.get(name)
    if listed is None:
        raise Damaged(f"{folder / RUN_FILE} does not list {name}", remedy=RESTORE)
    with _readable(path):
        text = path.read_bytes()
    _compare(path, listed, describe_text(text))
    return text.decode("utf-8")


def _refuse_added(folder: Location, info: RunInfo, table: str, known: set[Location]) -> None:
    """Raise an error for Parquet files that are not listed, since other readers of the folder would count them."""
    ended = {each.replication for each in info.done if each.complete}  # a recording that goes on has begun one
    for path in listed((folder / table).rglob("*.parquet")):
        if path in known or path.name.startswith((".", "_")):
            continue
        place = _PART.fullmatch(path_within(folder, path))
        if info.status is RunStatus.RUNNING and place is not None and int(place[2]) not in ended:
            continue
        raise Damaged(
            f"{path} does not belong to this run: {RUN_FILE} does not list it",
            remedy="Move it out of the folder.",
        )


@contextmanager
def _readable(path: Location) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}", remedy=RESTORE) from None


def _compare(path: Location, listed: FileInfo, found: FileInfo) -> None:
    if (found.bytes, found.blake2b) != (listed.bytes, listed.blake2b):
        raise Damaged(
            f"{path} was changed after it was written: {found.bytes} bytes with BLAKE2b {found.blake2b}; "
            f"{RUN_FILE} lists {listed.bytes} bytes with {listed.blake2b}",
            remedy=RESTORE,
        )
