"""The start of the Java virtual machine to which PySpark connects, by PySpark's own launcher.

Decides where Java's output goes (a file, whose last lines are shown when it fails to start), its options, which of
Spark's jars it loads, and how it ends. Spark's script requires the module jdk.incubator.vector, which Spark does not
need and reduced runtimes lack; these are started by a script that removes the requirement.

An own gateway, with one start of Java instead of two, saved no measurable time (session ready
after a median of 10.1 s, with Spark's script 7.5 s, on two busy processors), so there is none. Nor is there an archive
of Spark's classes: the first run took 72 s instead of 45 s to write it, and later ones 15 s instead of 21 s.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from qsctl.endings import Release, start_held
from qsctl.errors import Unavailable
from qsctl.summary.spark._master import computes_here
from qsctl.summary.spark.internals import (
    CONNECTION_FILE_NAME,
    PORT_NAME,
    SECRET_NAME,
    connect_to_java,
)
from qsctl.summary.spark.java import REMEDY, JavaRuntime

VECTOR_MODULE: Final = "jdk.incubator.vector"
_LAST_LINES: Final = 3
_END_SECONDS: Final = 10.0
_POLL_S: Final = 0.05
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_SETTINGS_OF_JARS: Final = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
"""Settings with which Java loads classes of the user."""
_OPTION_VARIABLES: Final = (
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "SPARK_CONF_DIR",
)  # fmt: skip
"""Environment variables that may contain options of Java, in addition to Spark's settings."""
_LAUNCHER_OPTIONS: Final = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of the small Java with which Spark's script begins, and which runs for a quarter of a second."""

LOG4J_FILE: Final = "log4j2.properties"
QUIET_LOG4J: Final = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n
"""
"""Log4j configuration that logs errors only, to Java's log file."""


UNUSED_JARS: Final = "spark-mllib_*.jar"
"""The jars that Java does not load for a short summary: every session searches the jars for extensions, and MLlib takes
1.5 s to register SQL functions that no measure uses.
"""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running Java virtual machine with PySpark's connection to it."""

    connection: Any
    """The py4j gateway."""
    process: subprocess.Popen[bytes]
    """The process of Java."""
    end: Release
    """Kills the process if it runs."""
    is_plain: bool = False
    """Whether Java may be killed without a loss: all its files are in the private folder, and no option of the user
    acts at its end. If the user gave Spark settings, its session must be stopped first.
    """

    def close(self) -> None:
        """End the Java virtual machine, which also ends by itself at the end of this process, when its input closes."""
        self.connection.shutdown()
        if self.is_plain:
            self.end()  # its regular exit takes half a second, to remove files that the caller removes anyway
        try:
            if self.process.stdin is not None:
                self.process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=_END_SECONDS)
        finally:
            self.end()


def java_options(settings: Mapping[str, str], folder: Path, *, brief: bool) -> str:
    """Return the value of `spark.driver.extraJavaOptions`: qsctl's options, then the user's, which take precedence.

    Args:
        settings: Spark's settings.
        folder: the private folder, for the log4j file and temporary files.
        brief: use only the quick compiler, for little work or if all tasks run elsewhere.
    """
    ours = ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseParallelGC", "-XX:-UsePerfData", "-Duser.timezone=UTC"]
    ours.append(f"-Djava.io.tmpdir={folder}")
    ours.append(f"-Dlog4j2.configurationFile={(folder / LOG4J_FILE).as_uri()}")
    if brief or not computes_here(settings.get("spark.master", "")):
        # A driver whose tasks run elsewhere plans and collects. Its first summary of ten million messages took 21 s of
        # processor time with both compilers, 11 s with the quick one.
        ours.append("-XX:TieredStopAtLevel=1")
    if brief and not any(settings.get(name) for name in _SETTINGS_OF_JARS):
        # Verification of the classes in Spark's jars takes a second of a short run.
        ours += ["-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"]
    return " ".join([*ours, settings.get(_JAVA_OPTIONS, "")]).strip()


def java_home(java: JavaRuntime, folder: Path) -> Path:
    """Return the value of `JAVA_HOME` with which Spark's script starts this Java.

    Args:
        java: the runtime.
        folder: the folder for a script that replaces a `java` without the vector module.
    """
    if not java.modules or VECTOR_MODULE in java.modules:
        return java.home
    script = folder / "java" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(
        "#!/bin/sh\n"
        "# Every argument but the request for a module that this runtime does not have.\n"
        "for argument; do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.executable))} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o700)
    return script.parent.parent


def brief_home(spark_home: Path, folder: Path) -> Path:
    """Make a copy of Spark's folder that consists of links and omits `UNUSED_JARS`; return its path.

    Args:
        spark_home: the folder with Spark's `bin` and `jars`.
        folder: the parent of the copy.
    """
    made = folder / "spark"
    (made / "jars").mkdir(parents=True)
    for entry in spark_home.iterdir():
        if entry.name != "jars":
            (made / entry.name).symlink_to(entry)
    for jar in (spark_home / "jars").iterdir():
        if not jar.match(UNUSED_JARS):
            (made / "jars" / jar.name).symlink_to(jar)
    return made


def start_gateway(
    java: JavaRuntime,
    spark_home: Path,
    settings: Mapping[str, str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    brief: bool = False,
) -> Gateway:
    """Start Java and wait until PySpark is connected to it.

    Args:
        java: the runtime to start.
        spark_home: the folder with Spark's `bin` and `jars`.
        settings: Spark's settings.
        folder: a private folder for the log and the log4j file; the caller removes it.
        environment: environment variables for Java, in addition to those of this process.
        brief: for little work: use the quick compiler, and omit jars that no summary needs.

    Raises:
        Unavailable: Java ended before it accepted a connection; the message has its last output.
    """
    (folder / LOG4J_FILE).write_text(QUIET_LOG4J, encoding="utf-8")
    log = folder / "java.log"
    conf = {**settings, _JAVA_OPTIONS: java_options(settings, folder, brief=brief)}
    home = brief_home(spark_home, folder) if brief else spark_home
    seen = {
        "SPARK_LAUNCHER_OPTS": " ".join(_LAUNCHER_OPTIONS), **environment,
        "SPARK_HOME": str(home), "JAVA_HOME": str(java_home(java, folder)),
    }  # fmt: skip
    environment = {**os.environ, **seen, CONNECTION_FILE_NAME: str(folder / "connection")}
    try:
        with log.open("wb") as output:
            process, end = start_held(lambda: _launch(home, conf, output, environment))
        try:
            port, secret = _connection(process, folder / "connection")
            # PySpark connects to a running Java instead of starting one.
            with changed_environment({PORT_NAME: str(port), SECRET_NAME: secret}):
                connection = connect_to_java()
        except BaseException:
            end()
            if process.stdin is not None:
                process.stdin.close()
            raise
    except (OSError, EOFError) as error:
        why = last_words(log) or (str(error) if isinstance(error, OSError) else "it wrote nothing")
        raise Unavailable(
            f"Java {java.version} from {java.source} ({java.executable}) could not start Spark: {why}",
            remedy=REMEDY,
        ) from None
    return Gateway(connection, process, end, is_plain=_is_plain(settings))


def _launch(
    home: Path, conf: Mapping[str, str], output: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start Spark's script in a session of its own, so that Ctrl-C reaches Python alone, which then closes Java in
    order.

    PySpark's own start leaks the process if an interrupt arrives while Java starts: it removes the folder into which
    Java is to write its port, which ends Java's main thread, while its other threads run forever.
    """
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return subprocess.Popen(
        [home / "bin" / "spark-submit", *options, *shlex.split(os.environ.get(_ARGUMENTS, "pyspark-shell"))],
        stdin=subprocess.PIPE,  # Java ends when its standard input closes
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**environment, "SPARK_CONNECT_MODE": "0"},
    )


def _connection(process: subprocess.Popen[bytes], place: Path) -> tuple[int, str]:
    """Wait until Java has written its port and its secret, and return them.

    Raises:
        EOFError: Java has ended.
    """
    while not place.is_file():  # it is written under another name and renamed
        if process.poll() is not None:
            raise EOFError
        time.sleep(_POLL_S)
    written = place.read_bytes()
    length = int.from_bytes(written[4:8], "big")
    return int.from_bytes(written[:4], "big"), written[8 : 8 + length].decode()


def _is_plain(settings: Mapping[str, str]) -> bool:
    """Return whether Java runs locally and without options of the user."""
    is_given = _JAVA_OPTIONS in settings or any(os.environ.get(name) for name in _OPTION_VARIABLES)
    return computes_here(settings["spark.master"]) and not is_given


@contextmanager
def changed_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process's environment during the block."""
    former = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def last_words(log: Path) -> str:
    """Return the last lines of a Java log that are not part of a stack trace, joined; empty if it has none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    noise = ("\t", "    at ", "WARNING")
    spoken = [
        line.strip()
        for line in lines
        # If Java ends at once, Spark's script reports that with messages of its own.
        if line.strip() and not line.startswith(noise) and "spark-class: line " not in line
    ]
    return "; ".join(spoken[-_LAST_LINES:])
