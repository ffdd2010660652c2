"""What settings of the files mean for the samples in them (section 2.14, Tables 3.8 and 3.9)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qsctl.config.filesystem import JournalMode, Synchronization
from qsctl.config.problems import Problem
from qsctl.config.rules.place import Place, QueuePlace
from qsctl.core.queue.settings import UNLIMITED, PersistenceKind, SharedReaderQueueSettings

_FILE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_FILE_NAME_ALLOWED = "letters, digits, _ . and -"


def _persistent_queues(place: Place) -> list[SharedReaderQueueSettings]:
    return [
        queue
        for participant in place.configuration.service.participants
        for subscriber in participant.subscribers
        for queue in subscriber.queues
        if queue.persistence.kind is PersistenceKind.PERSISTENT
    ]


def _persists(place: Place) -> bool:
    service = place.configuration.service_qos.persistence.kind is PersistenceKind.PERSISTENT
    return service or bool(_persistent_queues(place))


def _filesystem(place: Place, tag: str) -> str:
    return f"{place.path}/persistence_settings/filesystem/{tag}"


def directory_exists(place: Place) -> Iterator[Problem]:
    """The directory must exist when the service starts (Table 3.9)."""
    directory = place.configuration.filesystem.directory
    if directory is not None and not (place.working_directory / directory).is_dir():
        yield place.error(
            _filesystem(place, "directory"),
            "the directory of the persistent files does not exist",
            found=str(directory),
            allowed="an existing directory",
            suggestion=f"Make it: mkdir -p {directory}",
        )


def unsafe_journal_is_said(place: Place) -> Iterator[Problem]:
    """Without a journal on disk, a crash inside a transaction damages the file (Table 3.9)."""
    mode = place.configuration.filesystem.journal_mode
    if mode in {JournalMode.MEMORY, JournalMode.OFF}:
        yield place.warning(
            _filesystem(place, "journal_mode"),
            "a crash inside a transaction damages the database file",
            found=mode,
            allowed="DELETE, PERSIST, TRUNCATE or WAL where the samples matter",
        )


def unsynchronized_persistence_is_said(place: Place) -> Iterator[Problem]:
    """The default of Table 3.9 is OFF: what was acknowledged may be lost with the power."""
    if place.configuration.filesystem.synchronization is Synchronization.OFF and _persists(place):
        path = _filesystem(place, "synchronization")
        named = path in place.reading.elements
        yield place.warning(
            path,
            "persistent samples are not synchronized with the disk: losing power loses acknowledged ones",
            found="OFF" if named else "OFF, the default",
            allowed="FULL where no acknowledged sample may be lost",
        )


def write_ahead_log_without_full_synchronization_is_said(place: Place) -> Iterator[Problem]:
    """A write-ahead log under NORMAL is not synchronized at commit, so an acknowledgment is not durable."""
    filesystem = place.configuration.filesystem
    if filesystem.journal_mode is JournalMode.WAL and filesystem.synchronization is Synchronization.NORMAL:
        yield place.warning(
            _filesystem(place, "synchronization"),
            "with WAL, NORMAL does not synchronize at commit: losing power loses acknowledged samples",
            found="WAL and NORMAL",
            allowed="WAL and FULL where no acknowledged sample may be lost",
        )


def trace_file_holds_payloads(place: Place) -> Iterator[Problem]:
    """A trace of every statement is for debugging, and large (Table 3.9)."""
    trace_file = place.configuration.filesystem.trace_file
    if trace_file is not None:
        yield place.warning(
            _filesystem(place, "trace_file"),
            "every statement is traced: for debugging only, it slows every sample down",
            found=str(trace_file),
            allowed="no <trace_file> in production",
        )


def application_name_is_a_file_name(place: Place) -> Iterator[Problem]:
    """The application name is part of the names of files (section 2.14)."""
    name = place.configuration.service.application_name
    if _persists(place) and not _FILE_NAME.fullmatch(name):
        yield place.error(
            place.path,
            "the application name is part of file names and has characters that those cannot have",
            found=name,
            allowed=_FILE_NAME_ALLOWED,
        )


def persistent_names_are_file_names(place: QueuePlace) -> Iterator[Problem]:
    """The topic of a persistent queue is part of the names of its files (section 2.14.2)."""
    if place.queue.persistence.kind is not PersistenceKind.PERSISTENT:
        return
    if not _FILE_NAME.fullmatch(place.queue.topic_name):
        yield place.error(
            "topic_name",
            "the topic of a persistent queue is part of file names and has characters that those cannot have",
            found=place.queue.topic_name,
            allowed=_FILE_NAME_ALLOWED,
        )


def memory_limit_counts_only_in_memory(place: QueuePlace) -> Iterator[Problem]:
    """`<max_in_memory_bytes>` is ignored for persistent queues without in-memory state (section 2.15.1.2)."""
    persistence = place.queue.persistence
    on_disk_only = persistence.kind is PersistenceKind.PERSISTENT and not persistence.in_memory_state
    if on_disk_only and place.queue.limits.max_in_memory_bytes != UNLIMITED:
        yield place.warning(
            "queue_qos/resource_limits/queue_allocation_settings/max_in_memory_bytes",
            "<max_in_memory_bytes> is ignored: the queue keeps no state in memory",
            found=str(place.queue.limits.max_in_memory_bytes),
            allowed="<max_count> limits such a queue",
        )
