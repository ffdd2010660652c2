"""The Spark session of a process, created from options, environment and defaults.

Decides the settings (small jobs start fast, also offline, and in containers whose host name cannot be resolved), their
precedence (`--master` and `--conf`, then `QSCTL_SPARK_*`, then the defaults), and the removal of all files at exit. A
master `sc://…` is a Spark Connect server: this process then starts no JVM, and the server keeps its own settings.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.endings import INTERRUPTS
from qsctl.errors import NoAnswer, QsctlError, Unavailable, UsageError
from qsctl.summary.spark._gateway import Gateway, changed_environment, start_gateway
from qsctl.summary.spark._master import check_master, computes_here, cores_of, is_local, is_loopback, is_remote
from qsctl.summary.spark._shared_session import SESSION_SETTINGS, session_beside
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.internals import forget_connect, forget_java
from qsctl.summary.spark.java import find_java
from qsctl.summary.spark.private_folder import PrivateFolder, remove_abandoned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
MASTER_VARIABLE: Final = "QSCTL_SPARK_MASTER"
CONF_VARIABLE: Final = "QSCTL_SPARK_CONF"
"""Environment variable with settings as `name=value`, separated by semicolons or line ends."""
MEMORY_VARIABLE: Final = "QSCTL_SPARK_DRIVER_MEMORY"

_MEBIBYTE: Final = 1 << 20
_SPLIT_BYTES: Final = "32m"
"""About three million rows of the log for each task, so that a file of ten million is divided evenly among the cores.
Executors use Spark's own default, since each task costs the driver time and yields a row for every group that it reads.
"""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The master of Spark and its settings; an empty `master` means the environment's, or else this machine."""

    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Running:
    """The Spark session and Java that this process started and must end."""

    session: SparkSession
    settings: dict[str, str]
    given: frozenset[str]
    gateway: Gateway | None
    folder: PrivateFolder
    leaves_at_once: bool = False


_running: _Running | None = None
_beside: Final[dict[str, SparkSession]] = {}
"""Sessions on the Spark of another program in this process, by application id."""
_lock: Final = threading.RLock()
"""Held while Spark starts or ends."""


def parse_conf(assignments: Iterable[str], source: str = "--conf") -> dict[str, str]:
    """Parse `name=value` texts to Spark settings.

    Raises:
        UsageError: a text has no `=`, or its name is not a valid name of a setting.
    """
    settings: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise UsageError(
                f"{source} {assignment!r} is not spark.NAME=VALUE",
                remedy="Write it as in --conf spark.driver.memory=8g.",
            )
        settings[name.strip()] = value.strip()
    return settings


def resolve_settings(options: SparkOptions, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return all settings of the session: the defaults, overridden by the environment, overridden by the options.

    Args:
        options: the settings of the caller.
        environment: has the variables `QSCTL_SPARK_*`.
        folder: folder for Spark's files, which is removed at exit.
    """
    from_environment = _conf_of(environment)
    named = options.master or environment.get(MASTER_VARIABLE, "") or from_environment.get("spark.master", "")
    master = options.conf.get("spark.master", "") if not options.master and "spark.master" in options.conf else named
    master = master or DEFAULT_MASTER
    local = is_local(master)
    settings = {
        "spark.master": master,
        "spark.app.name": "qsctl",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # The timestamp type that all readers of Parquet support; the default is specific to Spark and Impala.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # No measure divides by zero or overflows in a cast; sums are exact by `observation.exact_sum`.
        "spark.sql.ansi.enabled": "false",
        # Otherwise each column object would search for its line in the source.
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.adaptive.enabled": "true",
        # Pruning would never omit a replication, but costs a query for each join.
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
        # By default Spark caches the code of 100 stages, fewer than a summary has, and compiles all again each time.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Every grouping of the log has more groups than the small first-level hash map holds.
        "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": environment.get(MEMORY_VARIABLE, "") or f"{_default_memory_mebibytes()}m",
        "spark.log.level": "ERROR",
    }
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        # Spark's client of the object store ignores this setting, unlike the event log's client.
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
    if computes_here(master):
        settings["spark.sql.files.maxPartitionBytes"] = _SPLIT_BYTES
    if local:
        settings["spark.local.dir"] = str(folder / "local")
        # Spark coalesces the partitions to about one for each core, more evenly if there are more.
        settings["spark.sql.shuffle.partitions"] = str(max(2, 8 * cores_of(master)))
        # Above this number Spark lists files in a job; on one machine, listing hundreds is faster without one.
        settings["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "1000"
    if local or is_loopback(master):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    return {**settings, **from_environment, **options.conf, "spark.master": master}


def _conf_of(environment: Mapping[str, str]) -> dict[str, str]:
    written = environment.get(CONF_VARIABLE, "").replace("\n", ";").split(";")
    return parse_conf(filter(None, (text.strip() for text in written)), CONF_VARIABLE)


def _given(options: SparkOptions, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the settings that the user chose."""
    return frozenset({*options.conf, *_conf_of(environment)})


def spark_session(
    options: SparkOptions | None = None, *, brief: bool = False, runs_python: bool = True
) -> SparkSession:
    """Return the session of this process; it is created at the first call, and created anew if the settings differ.

    If another program's Spark runs in this process, as in a notebook of a platform, the session shares its context.

    Args:
        options: the master and the settings.
        brief: for little work: Java compiles quickly, and MLlib is omitted. It has an effect only if Java is started.
        runs_python: tasks may run Python. Its worker processes print an error if Java ends before them, so the session
            is stopped in order, which takes half a second.

    Raises:
        Unavailable: a usable Java, pyspark, or a package of Spark Connect is not installed.
        UsageError: the master or a setting is invalid, or another program's Spark runs here with another master.
        NoAnswer: no process listens at the master's address, or it does not answer.
    """
    options = options or SparkOptions()
    with _lock:
        return _session(options, brief=brief, runs_python=runs_python)


def start_early(options: SparkOptions | None = None, *, brief: bool = False) -> None:
    """Start Spark for a summary in a background thread; `spark_session` waits for it.

    A fault is ignored here; `spark_session` tries again and raises it.
    """
    options = options or SparkOptions()

    def start() -> None:
        with suppress(QsctlError):
            spark_session(options, brief=brief, runs_python=False)

    threading.Thread(target=start, name="spark-start").start()


def _session(options: SparkOptions, *, brief: bool, runs_python: bool) -> SparkSession:
    global _running  # noqa: PLW0603 - one Java machine a process is Spark's own rule
    if _running is None:
        asked = options.master or options.conf.get("spark.master", "")
        with spark_faults():
            beside = session_beside(asked, _beside)
        if beside is not None:
            return beside
    folder = PrivateFolder()
    try:
        settings = resolve_settings(options, os.environ, folder.path)
        if _running is not None and _same(settings, _running.settings):
            folder.remove()
            _running.leaves_at_once &= not runs_python
            return _running.session
        check_master(settings["spark.master"])  # before the current session ends, so that a misprint does not end it
        stop_spark()
        remove_abandoned()
        given = _given(options, os.environ)
        if is_remote(settings["spark.master"]):
            session, gateway = _connect(settings, given), None
        else:
            session, gateway = _start(settings, folder.path, brief=brief)
    except BaseException:
        folder.remove()
        raise
    leaves_at_once = brief and not given and not runs_python and gateway is not None and gateway.is_plain
    _running = _Running(session, settings, given, gateway, folder, leaves_at_once)
    return session


def tune(spark: SparkSession, *, brief: bool) -> None:
    """Set how queries are planned from here on.

    Args:
        spark: the session; on a cluster its own settings are kept.
        brief: the tables are small: use one task for each stage and no adaptive planning between stages, since each
            costs more than the work. Settings that the user gave are kept.
    """
    if _running is None or not is_local(_running.settings["spark.master"]):
        return
    for name, value in {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}.items():
        if name not in _running.given:
            spark.conf.set(name, value if brief else _running.settings[name])


def runs_here(spark: SparkSession) -> bool:
    """Return whether a session's tasks run in processes of this machine with this Python interpreter."""
    if _running is None or spark is not _running.session or not computes_here(_running.settings["spark.master"]):
        return False
    return os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable


def stop_spark() -> None:
    """End the session and its Java and remove their files; do nothing without a session."""
    global _running
    with _lock:
        if _running is None:
            return
        ending, _running = _running, None
        try:
            with spark_faults():
                ending.session.stop()
        except (Unavailable, NoAnswer):
            pass  # Java has ended already.
        finally:
            _forget(ending.gateway)
            ending.folder.remove()


def _leave() -> None:
    """End the session at the end of the process.

    A brief session without Python workers and settings of the user is ended by killing Java. Stopping it in order takes
    half a second, most of which PySpark sleeps.
    """
    global _running  # noqa: PLW0603 - as above
    with _lock:
        ending = _running
        if ending is not None and ending.leaves_at_once and ending.gateway is not None:
            _running = None
            _forget(ending.gateway)
            ending.folder.remove()
        else:
            stop_spark()


atexit.register(_leave)


def _connect(settings: Mapping[str, str], given: frozenset[str]) -> SparkSession:
    """Return a session of a Spark Connect server, with the user's settings and the defaults that a session may set."""
    with spark_faults():
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.remote(settings["spark.master"])
        for name in sorted({*SESSION_SETTINGS, *given} - {"spark.master"}):
            builder = builder.config(name, settings[name])
        return builder.getOrCreate()


def _check_python(settings: Mapping[str, str]) -> None:
    """Raise an error if this machine lacks the Python chosen for tasks, since each task would fail with a Java stack
    trace.
    """
    for source, program in (
        ("spark.pyspark.python", settings.get("spark.pyspark.python")),
        ("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON")),
    ):
        if program and shutil.which(program) is None:
            raise UsageError(
                f"{source} names {program}, which cannot be run: Spark's tasks would not start",
                remedy="Unset it, or name a Python that has qsctl.",
            )


def _start(settings: dict[str, str], folder: Path, *, brief: bool) -> tuple[SparkSession, Gateway]:
    master = settings["spark.master"]
    if is_local(master):
        _check_python(settings)
    java = find_java()
    environment: dict[str, str] = {}
    if is_local(master) or is_loopback(master):
        # Java would look up the host name, which often cannot be resolved in a container.
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "spark.pyspark.python" in settings:
        os.environ["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise Unavailable(f"pyspark is not usable: {error}", remedy="pip install pyspark") from None
    home = Path(pyspark.__file__).parent
    gateway = start_gateway(java, home, settings, folder, environment, brief=brief)
    try:
        with spark_faults(), changed_environment(environment):
            conf = pyspark.SparkConf(loadDefaults=False)
            for name, value in settings.items():
                conf.set(name, value)
            silence_py4j()
            with _own_interrupts():
                pyspark.SparkContext(conf=conf, gateway=gateway.connection)
            return SparkSession.builder.getOrCreate(), gateway
    except BaseException:
        _forget(gateway)
        raise


def silence_py4j() -> None:
    """Disable the logging of py4j, which logs every interrupt, by its own loggers and the root logger, before it raises
    it.

    The first line to the root logger adds a handler to it, which then prints the lines that py4j's loggers propagate.
    """
    logging.getLogger().addFilter(_not_of_py4j)
    logging.getLogger("py4j").propagate = False


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep this process's handler of Ctrl-C during the block, since PySpark's calls Java on a connection in use."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _forget(gateway: Gateway | None) -> None:
    """Close the connection and the Java virtual machine, so that the next session starts its own."""
    forget_connect()
    if gateway is not None:
        forget_java(gateway.connection)
        gateway.close()


def _same(wanted: Mapping[str, str], have: Mapping[str, str]) -> bool:
    """Return whether two sets of settings differ at most in the folders that are made for each session."""
    own = {"spark.sql.warehouse.dir", "spark.local.dir"}
    return {name: value for name, value in wanted.items() if name not in own} == {
        name: value for name, value in have.items() if name not in own
    }


def _default_memory_mebibytes() -> int:
    """Return a quarter of the machine's memory, from 1 to 8 GiB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 1024
    return max(1024, min(8192, total // _MEBIBYTE // 4))
