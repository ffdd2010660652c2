"""The archive of Spark's classes: which Java and Spark it belongs to, when it is made, and that Java accepts it."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.summary.class_archive import ClassArchive, class_archive
from qsctl.summary.gateway import java_options
from qsctl.summary.java import JavaRuntime, search_java


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


@pytest.fixture
def java(tmp_path: Path) -> JavaRuntime:
    """A Java with the archive of its own classes; only its files are looked at."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (home / "lib" / "server" / "classes.jsa").touch()
    return JavaRuntime(home / "bin" / "java", home, "21.0.1", 21, "a test")


def archive_of(java: JavaRuntime, spark_home: Path, *, make: bool = True) -> ClassArchive | None:
    return class_archive(java, spark_home, {"XDG_CACHE_HOME": str(spark_home.parent / "cache")}, make=make)


def test_the_first_run_writes_the_archive_and_the_next_ones_read_it(java: JavaRuntime, spark_home: Path) -> None:
    first = archive_of(java, spark_home)
    assert first is not None
    assert first.is_new
    assert f"-XX:ArchiveClassesAtExit={first.file}" in first.options
    first.file.write_bytes(b"classes")
    first.publish(ended_well=True)
    (kept,) = first.file.parent.iterdir()
    for make in (True, False):
        later = archive_of(java, spark_home, make=make)
        assert later == ClassArchive(kept, None)
        assert f"-XX:SharedArchiveFile={kept}" in later.options
        later.publish(ended_well=True)
    assert kept.read_bytes() == b"classes"


def test_an_archive_that_was_cut_off_is_made_anew(java: JavaRuntime, spark_home: Path) -> None:
    """Java maps the file and would die of what is missing."""
    first = archive_of(java, spark_home)
    assert first is not None
    first.file.write_bytes(b"classes")
    first.publish(ended_well=True)
    (kept,) = first.file.parent.iterdir()
    kept.write_bytes(b"class")
    assert archive_of(java, spark_home, make=False) is None
    again = archive_of(java, spark_home)
    assert again is not None
    assert again.is_new
    again.file.write_bytes(b"classes")
    again.publish(ended_well=True)
    assert [path.read_bytes() for path in first.file.parent.iterdir()] == [b"classes"]


def test_a_run_of_another_kind_makes_no_archive(java: JavaRuntime, spark_home: Path) -> None:
    assert archive_of(java, spark_home, make=False) is None


def test_what_a_java_left_that_was_killed_is_removed(java: JavaRuntime, spark_home: Path) -> None:
    archive = archive_of(java, spark_home)
    assert archive is not None
    archive.file.write_bytes(b"half")
    archive.publish(ended_well=False)
    assert list(archive.file.parent.iterdir()) == []
    archive.publish(ended_well=True)
    assert list(archive.file.parent.iterdir()) == []


def test_another_java_and_changed_jars_have_another_archive(java: JavaRuntime, spark_home: Path) -> None:
    first = archive_of(java, spark_home)
    other_java = archive_of(replace(java, version="21.0.2"), spark_home)
    (spark_home / "jars" / "added.jar").touch()
    other_jars = archive_of(java, spark_home)
    assert first is not None
    assert other_java is not None
    assert other_jars is not None
    names = {each.file.name.rpartition("-")[0] for each in (first, other_java, other_jars)}
    assert len(names) == 3
    # Those of the jars before are of no use any more.
    first.file.write_bytes(b"earlier")
    first.publish(ended_well=True)
    other_jars.file.write_bytes(b"classes")
    other_jars.publish(ended_well=True)
    assert [path.read_bytes() for path in first.file.parent.iterdir()] == [b"classes"]


def test_without_a_folder_to_write_to_java_starts_as_ever(java: JavaRuntime, spark_home: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    assert archive_of(java, spark_home) is None
    assert "Archive" not in java_options({}, tmp_path / "log4j", None, brief=True)


@pytest.mark.parametrize("small", [False, True], ids=["as-found", "without-its-own-archive"])
def test_java_accepts_the_archive_that_it_wrote(small: bool, spark_home: Path, tmp_path: Path) -> None:
    found = search_java().chosen
    if found is None:
        pytest.skip("no Java is installed")
    if small:  # as in a runtime made small: what is looked at has no archive of Java's own classes
        found = replace(found, home=tmp_path)
    first = archive_of(found, spark_home)
    assert first is not None
    assert (first.base is not None) or not small
    run = [str(found.executable), "-XX:+UseParallelGC"]
    subprocess.run([*run, *first.options, "--list-modules"], check=True, capture_output=True)
    first.publish(ended_well=True)
    later = archive_of(found, spark_home, make=False)
    assert later is not None
    assert not later.is_new
    strict = ["-Xshare:on" if option == "-Xshare:auto" else option for option in later.options]
    subprocess.run([*run, *strict, "--list-modules"], check=True, capture_output=True)


def test_what_a_killed_process_left_is_removed_a_day_later(java: JavaRuntime, spark_home: Path) -> None:
    abandoned = archive_of(java, spark_home)
    assert abandoned is not None
    abandoned.file.write_bytes(b"clas")
    assert archive_of(java, spark_home) is not None
    assert abandoned.file.exists(), "its Java may be running"
    two_days_ago_s = time.time() - 2 * 86_400
    os.utime(abandoned.file, (two_days_ago_s, two_days_ago_s))
    assert archive_of(java, spark_home) is not None
    assert not abandoned.file.exists()
