"""Spark's classes as Java keeps them in memory, in a file: with it Java starts in about half the time.

Decides: where the archive is, which Java and which Spark it belongs to, and which run makes it. Java writes it when it
ends, and compares it with its own version and with the size and the date of every jar when it starts; where anything
differs, or the file is missing, it reads the jars as ever. Of a file that was cut off Java would die: so one gets its
name when it is whole on disk, and the name holds its size. A runtime made small lacks the archive of Java's own classes
that ours rests on, so one is made first. Nothing else depends on either file: both may be deleted.

Sources: JEP 310 (application class-data sharing) and JEP 350 (archives of a run's classes).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.summary.java import JavaRuntime

_BASE_SECONDS: Final = 120.0
_ABANDONED_SECONDS: Final = 86_400.0
_QUIET: Final = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
"""An archive that does not fit is no error, and Java would warn of it on standard output."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The options that make Java use an archive, or write one when it ends."""

    file: Path
    """The archive, or what the ending Java writes."""
    base: Path | None
    """The archive of Java's own classes, where the runtime has none."""
    is_new: bool = False

    @property
    def options(self) -> list[str]:
        """Options of the Java that runs Spark."""
        if not self.is_new:
            return [*_QUIET, f"-XX:SharedArchiveFile={self.file}"]
        below = [] if self.base is None else [f"-XX:SharedArchiveFile={self.base}"]
        return [*_QUIET, *below, f"-XX:ArchiveClassesAtExit={self.file}"]

    @property
    def launcher_options(self) -> list[str]:
        """Options of the small Java with which Spark's script begins."""
        return [] if self.base is None else [*_QUIET, f"-XX:SharedArchiveFile={self.base}"]

    def publish(self, *, ended_well: bool) -> None:
        """Give what the ended Java has written its name, and remove archives of other versions of the same Spark.

        Args:
            ended_well: whether Java ended by itself, so that its archive is whole.
        """
        if not self.is_new or not self.file.is_file():
            return
        if not ended_well:
            self.file.unlink()
            return
        kept = _publish(self.file)
        family = kept.name.split("-")[:2]
        for other in kept.parent.glob("-".join([*family, "*"])):
            if other != kept:
                with suppress(OSError):
                    other.unlink()


def class_archive(
    java: JavaRuntime, spark_home: Path, environment: Mapping[str, str], *, make: bool
) -> ClassArchive | None:
    """Return the archive of this Java and this Spark, or None where there is none and none can be made.

    Args:
        java: the runtime that is started.
        spark_home: the folder that holds Spark's `jars`.
        environment: read for `XDG_CACHE_HOME`.
        make: whether the run loads the classes that most runs load, so that an archive of it is worth keeping.
    """
    folder = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qsctl" / "java"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        jars = (spark_home / "jars").stat().st_mtime_ns
        runtime = java.executable.resolve()
        own = _hash(str(runtime), java.version, str(runtime.stat().st_mtime_ns))
    except OSError:
        return None
    base = None
    if not any((java.home / "lib" / "server").glob("classes*.jsa")):
        base = _whole(folder, f"java-{own}") or (_make_base(runtime, folder / f"java-{own}") if make else None)
        if base is None:
            return None
    name = f"spark-{_hash(str(spark_home))}-{_hash(own, str(jars))}"
    file = _whole(folder, name)
    if file is not None:
        return ClassArchive(file, base)
    if not make or not os.access(folder, os.W_OK):
        return None
    _remove_unfinished(folder)
    return ClassArchive(_unfinished(folder / name), base, is_new=True)


def _whole(folder: Path, name: str) -> Path | None:
    """Return the archive of this name that is as long as its name states."""
    found = (file for file in folder.glob(f"{name}-*.jsa") if file.stem == f"{name}-{file.stat().st_size}")
    return next(found, None)


def _remove_unfinished(folder: Path) -> None:
    """Remove what killed Javas began to write: no Java that is still running began it so long ago."""
    for file in folder.glob("*.tmp"):
        with suppress(OSError):
            if file.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                file.unlink()


def _unfinished(name: Path) -> Path:
    return name.with_name(f"{name.name}-{secrets.token_hex(4)}.tmp")


def _publish(written: Path) -> Path:
    """Give a file that is whole its name, once it is on disk, and return that."""
    with written.open("rb") as file:
        os.fsync(file.fileno())
    return written.rename(written.with_name(f"{written.name.rpartition('-')[0]}-{written.stat().st_size}.jsa"))


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()


def _make_base(java: Path, name: Path) -> Path | None:
    """Let Java archive its own classes, and return the archive; None where it cannot."""
    written = _unfinished(name)
    command = [str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={written}"]
    try:
        subprocess.run(command, capture_output=True, timeout=_BASE_SECONDS, check=True)
        return _publish(written)
    except (OSError, subprocess.SubprocessError):
        written.unlink(missing_ok=True)
        return None
