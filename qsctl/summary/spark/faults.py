"""Conversion of errors inside Spark to a single message with a remedy, instead of a Java stack trace.

Decides which fault becomes which `QsctlError`. A fault without a rule is reported by its first line.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from qsctl.errors import Damaged, InvalidInput, NoAnswer, NotFound, QsctlError, Refused, Unavailable, UsageError
from qsctl.eventlog.checked_files import RESTORE
from qsctl.eventlog.location import location

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], QsctlError]]

_LONGEST_LINE: Final = 400


def _memory(_: re.Match[str]) -> QsctlError:
    return Refused(
        "Spark ran out of memory",
        remedy="Give the Java machine more, as in --conf spark.driver.memory=8g (spark.executor.memory on a cluster), "
        "or summarize by fewer columns.",
    )


def _master(match: re.Match[str]) -> QsctlError:
    return UsageError(
        f"{match['master']!r} is not a Spark master",
        remedy="Write local[*], local[4], spark://host:7077, yarn or k8s://https://host:port.",
    )


def _no_filesystem(match: re.Match[str]) -> QsctlError:
    what = f"the scheme {match['scheme']}:" if match["scheme"] else f"the class {match['class']}"
    return Unavailable(
        f"this Spark has no connector for {what}",
        remedy="Give it the connector of its Hadoop release, as in "
        "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.5.0 for s3a:, or --conf spark.jars=FILE.jar.",
    )


def _not_seen(match: re.Match[str]) -> QsctlError:
    return InvalidInput(
        f"the executor on {match['host']} does not see {match['path']}, which is on this machine",
        remedy="Put the run where every executor sees it: a shared folder, or a URI such as s3a://bucket/run.",
    )


def _plain(path: str) -> str:
    """Return a file's path as the user gave it, from the URI that Spark reports."""
    return str(location(path)) if path.startswith("file:/") else path


def _worker(match: re.Match[str]) -> QsctlError:
    return InvalidInput(f"a task failed in Python: {match['text'].strip()[:_LONGEST_LINE]}")


RULES: Final[tuple[Rule, ...]] = (
    (
        re.compile(r"ARITHMETIC_OVERFLOW"),
        lambda _: Damaged(
            "a group's times or counts add up to more than 64 bits hold",
            remedy="Group by more, as in --by client,queue,replication, or simulate a shorter time.",
        ),
    ),
    (re.compile(r"OutOfMemoryError|GC overhead limit|Cannot allocate memory"), _memory),
    (re.compile(r"Could not parse Master URL: '?(?P<master>[^'\s]*)'?"), _master),
    (re.compile(r"Invalid master URL: (?P<master>\S+)"), _master),
    (
        re.compile(r"All masters are unresponsive|Master removed our application|stopped SparkContext"),
        lambda _: NoAnswer(
            "the Spark master does not answer, or ended the application",
            remedy="Check that it runs and that its workers have free cores; --master local[*] needs none.",
        ),
    ),
    (
        re.compile(
            r"No FileSystem for scheme \"?(?P<scheme>[\w.+-]+)|Class (?P<class>org\.apache\.hadoop\.fs\.\S+) not found"
        ),
        _no_filesystem,
    ),
    (
        re.compile(r"(?s)FILE_NOT_EXIST.*?(?P<path>file:/\S+?\.parquet).*?\((?P<host>\S+) executor \S+\)"),
        _not_seen,
    ),
    (
        re.compile(r"(?s)\((?P<host>\S+) executor \S+\).*?File (?P<path>file:/\S+?) does not exist"),
        _not_seen,
    ),
    (
        re.compile(r"Cannot run program \"(?P<program>[^\"]+)\""),
        lambda match: UsageError(
            f"Spark's tasks cannot start Python: {match['program']} cannot be run",
            remedy="Unset PYSPARK_PYTHON, or set it or spark.pyspark.python to a Python with qsctl on every executor.",
        ),
    ),
    (
        re.compile(r"PYTHON_VERSION_MISMATCH\S* (?P<text>[^\n]+)"),
        lambda match: Unavailable(
            f"Spark's tasks run another Python: {match['text'].strip()[:_LONGEST_LINE]}",
            remedy="Unset PYSPARK_PYTHON, or set spark.pyspark.python to a Python of the same minor version.",
        ),
    ),
    (
        re.compile(r"PATH_NOT_FOUND\S* .*?:(?P<path>/[^\s.]+[^\s]*)"),
        lambda match: NotFound(f"{match['path'].rstrip('.')} does not exist", remedy="Name a run folder."),
    ),
    (
        re.compile(r"(?P<path>\S+\.parquet)\S* is not a Parquet file|Could not read footer for file:?\s*(?P<file>\S+)"),
        lambda match: Damaged(
            f"{match['path'] or match['file']} is not a whole Parquet file",
            remedy="The run was cut off while it wrote this file; run the simulation again.",
        ),
    ),
    (
        re.compile(
            r"(?s)FAILED_READ_FILE\S* .*?(?:file|path)\S* (?P<path>\S+\.parquet).*CRC checksum verification failed"
        ),
        lambda match: Damaged(
            f"{_plain(match['path'])} was changed after it was written: a page of it does not have the checksum that "
            "was written with it",
            remedy=RESTORE,
        ),
    ),
    (
        re.compile(r"FAILED_READ_FILE\S* .*?(?:file|path)\S* (?P<path>\S+\.parquet)"),
        lambda match: Damaged(
            f"{_plain(match['path'])} was changed after it was written: it cannot be read as Parquet", remedy=RESTORE
        ),
    ),
    (
        re.compile(r"(?:SPARK_JAVA_VERSION|UnsupportedClassVersionError|Unsupported class file)"),
        lambda _: Unavailable("this Java is too old for Spark", remedy="Run `qsctl doctor` to see which Java is used."),
    ),
    (re.compile(r"qsctl\.errors\.\w+: (?P<text>[^\n]+)"), _worker),
    (re.compile(r"ModuleNotFoundError: (?P<text>No module named [^\n]+)"), _worker),
    (
        re.compile(r"No space left on device"),
        lambda _: Refused(
            "the disk is full", remedy="Free some space, or set --conf spark.local.dir to a larger disk."
        ),
    ),
)


def translate(text: str) -> QsctlError | None:
    """Return the error for a fault's whole text; None if no rule matches it."""
    for pattern, error in RULES:
        found = pattern.search(text)
        if found:
            return error(found)
    return None


def _unknown(text: str) -> QsctlError:
    spoken = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("at ", ":"))]
    first = next((line for line in spoken if not line.startswith("An error occurred while calling")), "no message")
    return Refused(
        f"Spark failed: {first[:_LONGEST_LINE]}", remedy="Run it again with QSCTL_DEBUG=1 to see Spark's whole account."
    )


_FULL: Final = re.compile(r"No space left on device\W+at org\.apache\.hadoop\.fs\.")
"""Matches a full disk while a table is written: these files use Hadoop's file system, temporary files do not."""


@contextmanager
def full_disk_as_of_the_system() -> Iterator[None]:
    """Convert Spark's error of a full disk, while the block writes tables, to the operating system's.

    Raises:
        OSError: the disk is full.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        if _FULL.search(text_of(error)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise


@contextmanager
def spark_faults(look_for_damage: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Convert an exception of Spark inside the block to one `QsctlError`.

    Args:
        look_for_damage: called before an unknown fault is reported; an error that it raises is reported instead.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JNetworkError as error:
        raise Unavailable(
            "the Java machine that runs Spark has ended",
            remedy="It may have been out of memory: try --conf spark.driver.memory=8g.",
        ) from error
    except (Py4JError, PySparkException) as error:
        text = text_of(error)
        known = translate(text)
        if known is None:
            look_for_damage()
        raise known or _unknown(text) from error


def text_of(error: BaseException) -> str:
    """Return the message of an exception; for an error of Java, with its whole chain of causes."""
    java = getattr(error, "java_exception", None)
    parts = [str(error)]
    if java is not None:
        parts.append(str(java.toString()))
        cause = java.getCause()
        while cause is not None:
            parts.append(str(cause.toString()))
            cause = cause.getCause()
    return "\n".join(parts)
