"""The log of a running service: lines on standard error or in a file, and on `rti/distlog` if enabled [QS 3.5].

Decides: which lines each verbosity includes [QS Table 4.1]. The distributed log has the same lines, whether or not it
has readers.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Final, Protocol, TextIO, TypeAlias, assert_never, cast

import structlog

from qsctl.core.events import (
    DeadLetterDeferred,
    Event,
    HighWatermarkPassed,
    LowWatermarkPassed,
    QueueFilled,
    SampleBounced,
    SampleDeadLettered,
    SamplesPassed,
    SamplesRestored,
    one_by_one,
)
from qsctl.errors import InvalidInput, QsctlError
from qsctl.transport.dds.diagnosis.peer_faults import FaultKind, PeerFault


class Verbosity(IntEnum):
    """A level of `-verbosity` [QS Table 4.1]; each includes the lower ones."""

    SILENT = 0
    EXCEPTIONS = 1
    WARNINGS = 2
    INFORMATION = 3
    DDS_WARNINGS = 4
    TRACING = 5
    DDS_TRACING = 6


DEFAULT_VERBOSITY: Final = Verbosity.EXCEPTIONS

_SHOWN: Final = frozenset(
    {
        QueueFilled,
        SampleDeadLettered,
        DeadLetterDeferred,
        SamplesRestored,
        SampleBounced,
        HighWatermarkPassed,
        LowWatermarkPassed,
    }
)
"""The events logged below level tracing; selected by type first, for there are four other events a sample."""

_DDS_WORDS: Final = {Verbosity.DDS_WARNINGS: "warning", Verbosity.TRACING: "warning", Verbosity.DDS_TRACING: "config"}


def dds_verbosity(verbosity: Verbosity) -> str:
    """Return the log level of Cyclone DDS itself."""
    return "none" if verbosity is Verbosity.SILENT else _DDS_WORDS.get(verbosity, "severe")


class LogFile:
    """A log file that is appended to line by line, and reopened after it was renamed or deleted.

    Programs that rotate logs rename the file while it is written to.

    Raises:
        InvalidInput: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._stream = self._opened()
        except OSError as error:
            raise InvalidInput(
                f"the log file {path} cannot be written: {error.strerror}", remedy="Name another with --log-file."
            ) from error

    def write(self, text: str) -> int:
        """Append text to the file that the path names now."""
        with self._lock:
            self._follow()
            return self._stream.write(text)

    def flush(self) -> None:
        """Write buffered text to the operating system."""
        with self._lock:
            self._stream.flush()

    def reopen(self) -> None:
        """Reopen the file now, if the path names another file or none."""
        with self._lock:
            self._follow()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _follow(self) -> None:
        """Reopen the path where it is not the open file; if that fails, continue with the open file."""
        own = os.fstat(self._stream.fileno())
        with contextlib.suppress(OSError):
            try:
                found = self._path.stat()
            except FileNotFoundError:
                found = None
            if found is None or (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino):
                before, self._stream = self._stream, self._opened()
                before.close()

    def _opened(self) -> TextIO:
        return self._path.open("a", encoding="utf-8", buffering=1)


LogStream: TypeAlias = TextIO | LogFile


@contextmanager
def log_stream(path: Path | None) -> Iterator[LogStream]:
    """Open the log file; without a path yield standard error.

    Raises:
        InvalidInput: it cannot be written.
    """
    if path is None:
        yield sys.stderr
        return
    with contextlib.closing(LogFile(path)) as stream:
        yield stream


class Publisher(Protocol):
    """A further output of log lines, beside standard error."""

    def write(
        self, service_name: str, process_id: int, level: int, timestamp_ns: int, event: str, fields_json: str
    ) -> None:
        """Publish one line."""


class ServiceLog:
    """The log of one service.

    Args:
        service_name: included in every line.
        verbosity: the lines to include.
        stream: the output; by default standard error.
        as_json: whether a line is a JSON object; else it is key=value text.
        session: included in every line of a session's own process.
    """

    def __init__(
        self,
        service_name: str,
        verbosity: Verbosity = DEFAULT_VERBOSITY,
        *,
        stream: LogStream | None = None,
        as_json: bool = False,
        session: str = "",
    ) -> None:
        self._service_name = service_name
        self._verbosity = verbosity
        self._publisher: Publisher | None = None
        self._stream = stream
        self._shows_events = verbosity >= Verbosity.WARNINGS
        renderer = (
            structlog.processors.JSONRenderer()
            if as_json
            else structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])
        )
        self._logger = structlog.wrap_logger(
            structlog.WriteLogger(cast(TextIO, stream or sys.stderr)),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                renderer,
            ],
        ).bind(service=service_name, **({"session": session} if session else {}))

    @property
    def traces(self) -> bool:
        """Return whether the verbosity includes the events of each sample."""
        return self._verbosity >= Verbosity.TRACING

    def publish_through(self, publisher: Publisher | None) -> None:
        """Write every line to the distributed log too; None stops that."""
        self._publisher = publisher

    def reopen(self) -> None:
        """Reopen the log file if it was renamed or deleted, as log rotation requests by SIGHUP."""
        if isinstance(self._stream, LogFile):
            self._stream.reopen()
        self.info("log_reopened")

    @contextmanager
    def endings(self) -> Iterator[None]:
        """Log an error that ends the service, and raise it again: no terminal may show it."""
        try:
            yield
        except QsctlError as error:
            self.error("ended", cause=error.message, **({"remedy": error.remedy} if error.remedy else {}))
            raise
        except Exception as error:
            self.error("crashed", cause=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
            raise

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._write(Verbosity.EXCEPTIONS, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log a condition that needs attention."""
        self._write(Verbosity.WARNINGS, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log a normal event."""
        self._write(Verbosity.INFORMATION, event, fields)

    def report_storage(self, event: str, queue: str, reason: str) -> None:
        """Log that a store failed or recovered, or that disk space became scarce or sufficient."""
        fields = {name: value for name, value in (("queue", queue), ("reason", reason)) if value}
        if event == "storage_failed":
            self.error(event, **fields)
        else:
            self.warning(event, **fields)

    def trace(self, event: str, **fields: object) -> None:
        """Log an event of one sample."""
        self._write(Verbosity.TRACING, event, fields)

    def peer_fault(self, fault: PeerFault) -> None:
        """Log unreadable messages of a peer, which were ignored, and other faults found by the transport."""
        if fault.kind is FaultKind.TYPE:
            self.info(fault.kind.value, source=fault.source, peer=fault.peer, reason=fault.reason)
            return
        self.error(fault.kind.value, source=fault.source, peer=fault.peer, reason=fault.reason, count=fault.count)

    def events(self, events: Sequence[Event]) -> None:
        """Log the queues' events that the verbosity includes."""
        if not self._shows_events:
            return
        for event in one_by_one(events) if self.traces else [event for event in events if type(event) in _SHOWN]:
            match event:
                case QueueFilled():
                    self.warning("queue_full", queue=event.queue)
                case DeadLetterDeferred():
                    self.warning("dead_letter_waits", queue=event.queue, to=event.to_queue, sample=str(event.identity))
                case SamplesRestored():
                    self.info("restored", queue=event.queue, samples=event.count)
                case SampleBounced():
                    self.info("refused", queue=event.queue, sample=str(event.identity), reason=event.reason.value)
                case HighWatermarkPassed():
                    self.info("high_watermark", queue=event.queue)
                case LowWatermarkPassed():
                    self.info("low_watermark", queue=event.queue)
                case SampleDeadLettered():
                    self.info("dead_lettered", queue=event.queue, to=event.to_queue, sample=str(event.identity))
                case SamplesPassed():
                    pass  # where each step is traced, none is counted
                case _:
                    self.trace(type(event).__name__, queue=event.queue, sample=str(event.identity))

    def _write(self, level: Verbosity, event: str, fields: dict[str, object]) -> None:
        if self._verbosity < level:
            return
        match level:
            case Verbosity.EXCEPTIONS:
                self._logger.error(event, **fields)
            case Verbosity.WARNINGS:
                self._logger.warning(event, **fields)
            case Verbosity.INFORMATION:
                self._logger.info(event, **fields)
            case Verbosity.TRACING | Verbosity.SILENT | Verbosity.DDS_WARNINGS | Verbosity.DDS_TRACING:
                self._logger.debug(event, **fields)
            case _:
                assert_never(level)
        if self._publisher is not None:
            self._publisher.write(
                self._service_name, os.getpid(), int(level), time.time_ns(), event, json.dumps(fields, default=str)
            )
