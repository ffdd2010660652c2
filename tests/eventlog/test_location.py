"""A run, a sweep or a report in an object store is what it is in a folder; what cannot be reached is one error.

The store is moto's server, which speaks as S3 does, on loopback. Where it is not installed, the tests are skipped.
"""

from __future__ import annotations

import csv
import io
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from qsctl.errors import InvalidInput, UsageError
from qsctl.eventlog.location import RemotePath, location, move, path_within, spark_path
from qsctl.eventlog.reader import counters_of, open_run
from qsctl.eventlog.run_folder import read_run_info
from tests import processes
from tests.commands import command_line
from tests.patience import eventually

BUCKET = "runs"
S3A_SETTINGS = os.environ.get("QSCTL_TEST_S3A_CONF", "")
"""Settings of Spark that bring the connector, such as `spark.jars=hadoop-aws.jar,bundle.jar`, with semicolons between.

Read at import, for no test sees the caller's settings."""
SMALL = ("--set", "horizon=100ms", "--set", "group[desks]/count=2", "--seed", "3")


def qsctl(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments])


def moto_server() -> str | None:
    """The program, installed beside this Python, or named by QSCTL_TEST_MOTO_SERVER; old ones take no empty file."""
    beside = Path(sys.executable).parent / "moto_server"
    named = os.environ.get("QSCTL_TEST_MOTO_SERVER")
    return named or (str(beside) if beside.exists() else None)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = moto_server()
    if program is None:
        pytest.skip("no object store: moto_server is not installed (pip install 'moto[server]')")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("store") / "log"
    with log.open("wb") as output:
        process = processes.start([program, "-H", "127.0.0.1", "-p", str(port)], stdout=output, stderr=output)
        try:
            assert eventually(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            processes.end(process)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The URI of a folder of its own for each test."""
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    from pyarrow.fs import S3FileSystem

    host = endpoint.removeprefix("http://")
    S3FileSystem(endpoint_override=host, scheme="http", region="us-east-1", allow_bucket_creation=True).create_dir(
        BUCKET
    )
    return f"s3a://{BUCKET}/{request.node.name}"


def test_a_plain_path_and_a_file_uri_are_paths_of_this_machine(tmp_path: Path) -> None:
    assert location("qsctl-runs/burst-1") == Path("qsctl-runs/burst-1")
    assert location(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert location(f"file:{tmp_path}") == tmp_path
    assert location("a:b") == Path("a:b")
    assert spark_path(tmp_path) == str(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("s3a:///run", "names no bucket or host"), ("file://elsewhere/run", "of another host")],
)
def test_a_uri_that_names_nothing_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        location(text)
    assert caught.value.remedy


def test_a_scheme_that_nothing_speaks_is_one_error() -> None:
    done = qsctl("simulate", "--out", "gopher://host/run", *SMALL)
    assert done.exit_code in {2, 7}
    assert "gopher" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_remote_path_has_what_a_path_has(store: str) -> None:
    folder = location(store)
    assert isinstance(folder, RemotePath)
    assert not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.raises(FileExistsError):
        (folder / "x").write_bytes(b"")
        (folder / "x").mkdir()
    (folder / "b" / "c.txt").write_text("grün")
    (folder / "a.txt").write_bytes(b"12345")
    assert (folder / "b" / "c.txt").read_text() == "grün"
    assert (folder / "a.txt").stat().st_size == 5
    assert [path_within(folder, each) for each in folder.iterdir()] == ["a.txt", "b", "x"]
    assert [path_within(folder, each) for each in folder.glob("*/*.txt")] == ["b/c.txt"]
    assert [each.name for each in folder.rglob("*.txt")] == ["a.txt", "c.txt"]
    assert pickle.loads(pickle.dumps(folder)) == folder
    assert spark_path(location(store.replace("s3a:", "s3:"))) == store
    move(folder / "a.txt", folder / "d.txt")
    assert (folder / "d.txt").is_file()
    assert not (folder / "a.txt").exists()
    move(folder / "b", folder / "e")
    assert (folder / "e" / "c.txt").is_file()
    assert not (folder / "b").exists()
    with pytest.raises(FileNotFoundError):
        (folder / "none").stat()
    with pytest.raises(FileNotFoundError):
        (folder / "none").read_bytes()


def test_a_run_in_the_store_is_the_run_in_a_folder(store: str, tmp_path: Path) -> None:
    for out in (store, tmp_path / "run"):
        done = qsctl("simulate", "burst", *SMALL, "--replications", "2", "--out", out)
        assert done.exit_code == 0, done.stderr
    here, there = read_run_info(tmp_path / "run"), read_run_info(location(store))
    assert there.fingerprint == here.fingerprint
    assert there.files == here.files
    assert counters_of(location(store), there).equals(counters_of(tmp_path / "run", here))
    messages = [batch.num_rows for batch in open_run(location(store)).messages()]
    assert sum(messages) == here.arrived_messages
    compared = qsctl("compare", store, tmp_path / "run")
    assert "A and B give the same." in compared.stdout, compared.stderr
    again = qsctl("simulate", "burst", *SMALL, "--out", store)
    assert again.exit_code == 1
    assert "is not empty" in again.stderr


def test_damage_in_the_store_is_found(store: str) -> None:
    assert qsctl("simulate", "burst", *SMALL, "--out", store).exit_code == 0
    folder = location(store)
    part = next(iter(folder.glob("counters/replication=*/part-*.parquet")))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(bytes(content))
    damaged = qsctl("compare", store, store)
    assert damaged.exit_code == 9
    assert "was changed after it was written" in " ".join(damaged.stderr.split())


@pytest.mark.spark
def test_a_sweep_in_the_store_goes_on_where_it_stopped_and_is_reported(store: str, tmp_path: Path) -> None:
    depth = "profile[trading]/queue[D-1]/max-depth"
    spark = ("--master", "local[2]", "--replications", "2", *SMALL, "--out", store)
    first = qsctl("sweep", "burst", "--grid", f"{depth}=50", *spark)
    assert first.exit_code == 0, first.stderr
    second = qsctl("sweep", "burst", "--grid", f"{depth}=50,100", *spark, "-o", "csv")
    assert second.exit_code == 0, second.stderr
    assert {row["point"] for row in csv.DictReader(io.StringIO(second.stdout))} == {f"{depth}=50", f"{depth}=100"}
    shown = qsctl("sweep", "burst", "--grid", f"{depth}=50,100", *spark)
    assert "4 replications were there already" in shown.stdout
    report = qsctl("report", store, "--out", f"{store}/report.html")
    assert report.exit_code == 0, report.stderr
    written = location(f"{store}/report.html").read_bytes()
    assert written.startswith(b"<!DOCTYPE html>")


def test_a_bucket_that_is_not_there_is_one_error(store: str) -> None:
    done = qsctl("simulate", "burst", *SMALL, "--out", "s3a://no-such-bucket/run")
    assert done.exit_code != 0
    assert "no-such-bucket" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_that_does_not_answer_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    done = qsctl("simulate", "burst", *SMALL, "--out", "s3a://runs/run")
    assert done.exit_code != 0
    assert "Traceback" not in done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit | InvalidInput)


def test_help_does_not_load_the_clients_of_stores() -> None:
    program = "import sys, qsctl.eventlog.location; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def s3a_settings() -> tuple[str, ...] | None:
    """The options by which Spark reads s3a:, where its connector is at hand."""
    import pyspark

    if S3A_SETTINGS:
        return tuple(word for each in S3A_SETTINGS.split(";") for word in ("--conf", each))
    return () if list((Path(pyspark.__file__).parent / "jars").glob("hadoop-aws-*.jar")) else None


@pytest.mark.spark
def test_a_summary_of_a_run_in_the_store_is_that_of_the_folder(store: str, tmp_path: Path) -> None:
    settings = s3a_settings()
    if settings is None:
        pytest.skip("Spark has no connector for s3a: the pyspark wheel brings none; name it with QSCTL_TEST_S3A_CONF")
    shown = []
    for out in (store, tmp_path / "run"):
        assert qsctl("simulate", "burst", *SMALL, "--replications", "2", "--out", out).exit_code == 0
        tables = f"{store}-tables" if out == store else str(tmp_path / "tables")
        done = qsctl("summarize", out, "--by", "queue", "--master", "local[2]", *settings, "--out", tables, "-o", "csv")
        assert done.exit_code == 0, done.stderr
        shown.append(done.stdout)
    assert shown[0] == shown[1]


@pytest.mark.spark
def test_a_spark_without_the_store_s_connector_names_the_missing_one(store: str) -> None:
    if s3a_settings() is not None:
        pytest.skip("this Spark has the connector")
    assert qsctl("simulate", "burst", *SMALL, "--out", store).exit_code == 0
    done = qsctl("summarize", store, "--master", "local[2]")
    assert done.exit_code == 7
    said = " ".join(done.stderr.split())
    assert "this Spark has no connector for the class org.apache.hadoop.fs.s3a.S3AFileSystem" in said
    assert "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:" in said
