"""A master that is none, or that does not answer, ends in one message within 15 seconds, before Java starts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.errors import NoAnswer, Unavailable, UsageError
from qsctl.summary.spark import _master as master_module
from qsctl.summary.spark._master import check_master
from qsctl.summary.spark.session import SparkOptions, spark_session

PLACES = ["spark://{}", "sc://{}", "k8s://https://{}"]


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def answering() -> Iterator[str]:
    """An address that answers whatever it is sent with one byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    if connection.recv(100):
                        connection.sendall(b"!")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.fixture(autouse=True)
def connect_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_module, "_importable", lambda _: True)


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    "master", ["locl", "spark://", "http://x:1", "local[x]", "spark://nowhere", "spark://h:99999", "sc://h:x", "sc://"]
)
def test_a_master_that_is_none_is_a_usage_error_before_java_starts(master: str) -> None:
    with pytest.raises(UsageError, match="is not a Spark master"):
        spark_session(SparkOptions(master=master))


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("master", PLACES)
def test_a_master_without_a_listener_is_reported_at_once(master: str) -> None:
    with pytest.raises(NoAnswer, match=r"nothing listens at \S+//127\.0\.0\.1:1"):
        spark_session(SparkOptions(master=master.format("127.0.0.1:1")))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("master", PLACES)
def test_a_master_that_is_silent_is_reported_within_15_seconds(
    master: str, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert master_module.ANSWER_SECONDS * 2 < 15
    monkeypatch.setattr(master_module, "ANSWER_SECONDS", 0.2)
    with pytest.raises(NoAnswer, match="does not answer within") as caught:
        check_master(master.format(silent))
    assert caught.value.remedy


@pytest.mark.parametrize("master", PLACES)
def test_a_master_that_answers_is_accepted(master: str, answering: str) -> None:
    check_master(master.format(answering))


def test_the_second_of_two_masters_is_enough(answering: str) -> None:
    check_master(f"spark://127.0.0.1:1,{answering}")


def test_spark_connect_without_its_packages_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_module, "_importable", lambda name: name != "grpc")
    with pytest.raises(Unavailable, match=r"not installed: grpc$") as caught:
        check_master("sc://127.0.0.1:15002")
    assert caught.value.remedy == "pip install 'qsctl[connect]'"


def test_yarn_without_a_configuration_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="HADOOP_CONF_DIR is not set"):
        check_master("yarn", {})
    with pytest.raises(UsageError, match=r"there is no yarn-site\.xml in HADOOP_CONF_DIR="):
        check_master("yarn", {"HADOOP_CONF_DIR": str(tmp_path)})
    site = tmp_path / "yarn-site.xml"
    site.write_text("<configuration/>")
    with pytest.raises(UsageError, match=r"no yarn\.resourcemanager\.hostname"):
        check_master("yarn", {"YARN_CONF_DIR": str(tmp_path)})
    site.write_text("<configuration><property>")
    with pytest.raises(UsageError, match="cannot be read"):
        check_master("yarn", {"YARN_CONF_DIR": str(tmp_path)})


def test_a_resource_manager_that_does_not_run_is_reported(tmp_path: Path, answering: str) -> None:
    site = tmp_path / "yarn-site.xml"
    text = (
        "<configuration><property><name>yarn.resourcemanager.address</name><value>{}</value></property></configuration>"
    )
    site.write_text(text.format("127.0.0.1:1"))
    with pytest.raises(NoAnswer, match="nothing listens at yarn"):
        check_master("yarn", {"HADOOP_CONF_DIR": str(tmp_path)})
    site.write_text(text.format(answering))
    check_master("yarn", {"HADOOP_CONF_DIR": str(tmp_path)})
