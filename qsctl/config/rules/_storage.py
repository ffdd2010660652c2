"""Rules about the effect of file settings on samples [QS 2.14, Tables 3.8 and 3.9]."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from qsctl.config.filesystem import JournalMode, Synchronization
from qsctl.config.rules._place import QueuePlace, ServicePlace
from qsctl.core.queue.settings import UNLIMITED, PersistenceKind, SharedReaderQueueSettings
from qsctl.core.settings import queues_of
from qsctl.declared.problems import Problem

_FILE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_FILE_NAME_ALLOWED = "letters, digits, _ . and -"

FILE_NAME_BYTES_MAX = 231
"""Of what storage builds of prefix, topic, subscriber, domain and application; the rest of 255 is the file's own."""


def _persistent_queues(place: ServicePlace) -> list[SharedReaderQueueSettings]:
    every = (queue for _, _, queue in queues_of(place.configuration.service))
    return [queue for queue in every if queue.persistence.kind is PersistenceKind.PERSISTENT]


def _persists(place: ServicePlace) -> bool:
    service = place.configuration.service_qos.persistence.kind is PersistenceKind.PERSISTENT
    return service or bool(_persistent_queues(place))


def _filesystem(place: ServicePlace, tag: str) -> str:
    return f"{place.path}/persistence_settings/filesystem/{tag}"


def directory_exists(place: ServicePlace) -> Iterator[Problem]:
    """Check that the directory exists and accepts files, as it must when the service starts [QS Table 3.9]."""
    if place.is_elsewhere:
        return
    directory = place.configuration.filesystem.directory
    used = place.working_directory / (directory or "")
    if used.is_dir() and _persists(place) and not os.access(used, os.W_OK | os.X_OK):
        yield place.error(
            _filesystem(place, "directory"),
            "the directory of the persistent files cannot be written",
            found=str(used),
            allowed="a directory that this user may write to",
        )
    if directory is not None and not (place.working_directory / directory).is_dir():
        yield place.error(
            _filesystem(place, "directory"),
            "the directory of the persistent files does not exist",
            found=str(directory),
            allowed="an existing directory",
            suggestion=f"Make it: mkdir -p {directory}",
        )


def unsafe_journal(place: ServicePlace) -> Iterator[Problem]:
    """Find a database file without a journal on disk: a crash inside a transaction damages it [QS Table 3.9]."""
    mode = place.configuration.filesystem.journal_mode
    if mode in {JournalMode.MEMORY, JournalMode.OFF}:
        yield place.warning(
            _filesystem(place, "journal_mode"),
            "a crash inside a transaction damages the database file",
            found=mode,
            allowed="DELETE, PERSIST, TRUNCATE or WAL where the samples matter",
        )


def unsynchronized_persistence(place: ServicePlace) -> Iterator[Problem]:
    """Find persistent queues whose writes are not synced, the default: losing power loses acknowledged samples."""
    if place.configuration.filesystem.synchronization is Synchronization.OFF and _persists(place):
        path = _filesystem(place, "synchronization")
        named = path in place.reading.elements
        yield place.warning(
            path,
            "persistent samples are not synchronized with the disk: losing power loses acknowledged ones",
            found="OFF" if named else "OFF, the default",
            allowed="FULL where no acknowledged sample may be lost",
        )


def write_ahead_log_without_full_synchronization(place: ServicePlace) -> Iterator[Problem]:
    """Find a write-ahead log under NORMAL: it is not synced at commit, so that acknowledged samples are not durable."""
    filesystem = place.configuration.filesystem
    if filesystem.journal_mode is JournalMode.WAL and filesystem.synchronization is Synchronization.NORMAL:
        yield place.warning(
            _filesystem(place, "synchronization"),
            "with WAL, NORMAL does not synchronize at commit: losing power loses acknowledged samples",
            found="WAL and NORMAL",
            allowed="WAL and FULL where no acknowledged sample may be lost",
        )


def database_settings_without_a_database_are_said(place: ServicePlace) -> Iterator[Problem]:
    """Find settings of database files where all queues are in the service's write-ahead log, which has none of them."""
    queues = _persistent_queues(place)
    has_database = place.configuration.service_qos.persistence.kind is PersistenceKind.PERSISTENT
    if not queues or has_database or any(not queue.persistence.in_memory_state for queue in queues):
        return
    for tag in ("journal_mode", "vacuum"):
        path = _filesystem(place, tag)
        if path in place.reading.elements:
            yield place.warning(
                path,
                "no queue here is in a database file: they share a write-ahead log, synced as <synchronization> asks",
                found=f"<{tag}>",
                allowed="queues without in-memory state, or a PERSISTENT service state, where it is to count",
            )


def trace_file_holds_payloads(place: ServicePlace) -> Iterator[Problem]:
    """Find a trace file, which has every SQL statement: it is for debugging, and grows large [QS Table 3.9]."""
    trace_file = place.configuration.filesystem.trace_file
    if trace_file is not None:
        yield place.warning(
            _filesystem(place, "trace_file"),
            "every statement is traced: for debugging only, it slows every sample down",
            found=str(trace_file),
            allowed="no <trace_file> in production",
        )


def application_name_is_a_file_name(place: ServicePlace) -> Iterator[Problem]:
    """Check that the application name can be part of the names of files [QS 2.14]."""
    name = place.configuration.service.application_name
    if _persists(place) and not _FILE_NAME.fullmatch(name):
        yield place.error(
            place.path,
            "the application name is part of file names and has characters that those cannot have",
            found=name,
            allowed=_FILE_NAME_ALLOWED,
        )


def persistent_names_are_file_names(place: QueuePlace) -> Iterator[Problem]:
    """Check that topics of a persistent queue and its reply queue can be part of a file's name [QS 2.14.2]."""
    if place.queue.persistence.kind is not PersistenceKind.PERSISTENT:
        return
    for step, topic in file_topics(place.queue):
        step = step if place.given(step) else "reply_type"
        if not _FILE_NAME.fullmatch(topic):
            yield place.error(
                step,
                "the topic of a persistent queue is part of file names and has characters that those cannot have",
                found=topic,
                allowed=_FILE_NAME_ALLOWED,
            )
        stem = _stem(place, topic)
        if len(stem.encode("utf-8", "replace")) > FILE_NAME_BYTES_MAX:
            yield place.error(
                step,
                "the names of a persistent queue are too long together for the name of its files",
                found=f"{len(stem.encode('utf-8', 'replace'))} bytes: {stem}",
                allowed=f"at most {FILE_NAME_BYTES_MAX} bytes",
            )


def file_topics(queue: SharedReaderQueueSettings) -> list[tuple[str, str]]:
    """Return the topics that name a persistent queue's files, each with its tag: its own, and that of its replies."""
    reply = [("reply_topic", queue.reply_topic)] if queue.reply_type and queue.reply_topic else []
    return [("topic_name", queue.topic_name), *reply]


def _stem(place: QueuePlace, topic: str) -> str:
    """Return a file's name without suffix: `[prefix][topic]@[subscriber]@[domain]@[application]` [QS 2.14.2]."""
    configuration = place.service.configuration
    parts = (
        configuration.filesystem.file_prefix + topic,
        place.subscriber.name,
        str(place.participant.domain_id),
        configuration.service.application_name,
    )
    return "@".join(parts)


def memory_limit_counts_only_in_memory(place: QueuePlace) -> Iterator[Problem]:
    """Find a `<max_in_memory_bytes>` that is ignored: the queue keeps no state in memory [QS 2.15.1.2]."""
    persistence = place.queue.persistence
    on_disk_only = persistence.kind is PersistenceKind.PERSISTENT and not persistence.in_memory_state
    if on_disk_only and place.queue.limits.max_in_memory_bytes != UNLIMITED:
        yield place.warning(
            "queue_qos/resource_limits/queue_allocation_settings/max_in_memory_bytes",
            "<max_in_memory_bytes> is ignored: the queue keeps no state in memory",
            found=str(place.queue.limits.max_in_memory_bytes),
            allowed="<max_count> limits such a queue",
        )
