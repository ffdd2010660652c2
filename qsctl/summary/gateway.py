"""Start the Java machine that PySpark talks to.

Decides: the options of the Java machine, what it may print (nothing), and how it ends with this process. Starting it
here, instead of through Spark's own scripts, needs no bash, takes one Java start instead of two, and leaves out the
module jdk.incubator.vector, which a runtime made small does not have and Spark can do without. A cluster's
configuration is still read, from SPARK_CONF_DIR, HADOOP_CONF_DIR and YARN_CONF_DIR.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.errors import Unavailable
from qsctl.summary.java import REMEDY, JavaRuntime

START_SECONDS: Final = 300.0
"""How long the Java machine may take to report where it listens: some seconds; minutes on an overloaded machine."""

_POLL_SECONDS: Final = 0.02
_LAST_LINES: Final = 3

_OPENED_PACKAGES: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""Packages of the Java library that Spark reaches into."""

_VECTOR_MODULE: Final = "jdk.incubator.vector"

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
"""Errors only; they land in the Java machine's log file, which is shown when it fails to start."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running Java machine: its process, the port it listens on at loopback, its secret, its log file."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    log: Path

    def close(self) -> None:
        """End the Java machine; it ends by itself too when this process does, for its input closes."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        """The last lines that the Java machine wrote, without its stack traces."""
        return last_words(self.log)


def java_command(
    java: JavaRuntime,
    spark_home: Path,
    settings: Mapping[str, str],
    log4j: Path,
    classpath: Sequence[Path] = (),
    *,
    brief: bool = False,
) -> list[str]:
    """The command line of the Java machine.

    Args:
        java: the runtime to start.
        spark_home: the folder that holds Spark's `jars`.
        settings: Spark's settings; those that only a Java start can take become options here.
        log4j: the file that keeps it quiet; a user's own log4j option in `spark.driver.extraJavaOptions` wins.
        classpath: configuration folders, looked at before Spark's classes.
        brief: use only the quick compiler.
    """
    options = ["-XX:+IgnoreUnrecognizedVMOptions", f"-Xmx{settings['spark.driver.memory']}", "-XX:+UseParallelGC"]
    options += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    if java.feature < 24:
        options.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    if _VECTOR_MODULE in java.modules:
        options.append(f"--add-modules={_VECTOR_MODULE}")
    options += [
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dio.netty.allocator.type=pooled",
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "-Duser.timezone=UTC",
    ]
    if brief:
        options.append("-XX:TieredStopAtLevel=1")
    options += settings.get("spark.driver.extraJavaOptions", "").split()
    places = [*map(str, classpath), *filter(None, [settings.get("spark.driver.extraClassPath", "")])]
    places.append(str(spark_home / "jars" / "*"))
    command = [str(java.executable), *options, "-cp", os.pathsep.join(places), "org.apache.spark.deploy.SparkSubmit"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    return [*command, "pyspark-shell"]


def start_gateway(
    java: JavaRuntime,
    spark_home: Path,
    settings: Mapping[str, str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    brief: bool = False,
) -> Gateway:
    """Start Java and wait until it says where it listens.

    Args:
        java: the runtime to start.
        spark_home: the folder that holds Spark's `jars`.
        settings: Spark's settings.
        folder: a private folder for the log, the log4j file and the secret; the caller removes it.
        environment: what the Java machine sees.
        brief: there is little to do: compile quickly instead of well. Measured on a small run: 18 s instead of 29.

    Raises:
        Unavailable: Java ended before it listened, or did not listen in time; its last words are in the message.
    """
    log4j = folder / "log4j2.properties"
    log4j.write_text(QUIET_LOG4J, encoding="utf-8")
    log = folder / "java.log"
    told = folder / "gateway"
    configuration = [
        Path(environment[name])
        for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
        if environment.get(name)
    ]
    command = java_command(java, spark_home, settings, log4j, configuration, brief=brief)
    seen = {
        **environment,
        "SPARK_HOME": str(spark_home),
        "JAVA_HOME": str(java.home),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told),
    }
    with log.open("wb") as output:
        try:
            # A session of its own: Ctrl-C is for the Python side, which then closes Java in order.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=seen, start_new_session=True
            )
        except OSError as error:
            raise Unavailable(f"Java at {java.executable} cannot be started: {error.strerror}", remedy=REMEDY) from None
    try:
        _await_connection(process, java, log, told)
        port, secret = _read_connection(told.read_bytes())
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return Gateway(process, port, secret, log)


def _await_connection(process: subprocess.Popen[bytes], java: JavaRuntime, log: Path, told: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not told.is_file():
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            why = last_words(log) or ("it wrote nothing" if ended else f"no answer within {START_SECONDS:.0f} s")
            raise Unavailable(
                f"Java {java.version} from {java.source} ({java.executable}) could not start Spark: {why}",
                remedy=REMEDY,
            )
        time.sleep(_POLL_SECONDS)


def _read_connection(told: bytes) -> tuple[int, str]:
    """The port and the secret: two big-endian numbers, port and length, then the secret's bytes."""
    port = int.from_bytes(told[:4], "big")
    length = int.from_bytes(told[4:8], "big")
    return port, told[8 : 8 + length].decode("utf-8")


def last_words(log: Path) -> str:
    """The last lines of a Java log that are no stack trace, joined; empty when there are none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    spoken = [line.strip() for line in lines if line.strip() and not line.startswith(("\t", "    at ", "WARNING"))]
    return "; ".join(spoken[-_LAST_LINES:])
