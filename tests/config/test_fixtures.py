"""Files that come with qsctl: the manual's examples, its misprints, files as the field writes them, wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from qsctl.config.configuration_xml import configuration_text
from qsctl.config.files.document import parse_document
from qsctl.config.files.schema import explainer, gate_accepts
from qsctl.config.files.variables import substitute
from qsctl.config.load import judge_files, load_configuration
from qsctl.declared.problems import InvalidFile, Severity, has_errors
from qsctl.shipped import shipped

ROOT = shipped("fixtures/config")
VARIABLES = {"QUEUE_NAME": "orders", "DOMAIN": "7"}


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("*.xml"))


GOOD = [
    ROOT / "default_service.xml",
    *(each for folder in ("manual", "field", "starter", "vendor", "unserved") for each in files(folder)),
]
BAD = [*files("misprints"), *files("wrong")]
ALL = [*GOOD, *BAD]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def check(path: Path, tmp_path: Path, *, strict: bool = False) -> list[object]:
    return list(
        judge_files([path], variables=VARIABLES, environment={}, working_directory=tmp_path, strict=strict).problems
    )


def test_there_are_fixtures_of_every_kind() -> None:
    assert len(files("manual")) >= 20
    assert len(files("misprints")) == 5
    assert len(files("field")) >= 3
    assert len(files("wrong")) >= 8
    assert len(files("starter")) == 6


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_a_good_file_has_no_error(path: Path, tmp_path: Path) -> None:
    assert not has_errors(judge_files([path], variables=VARIABLES, environment={}, working_directory=tmp_path).problems)


@pytest.mark.parametrize("path", BAD, ids=name)
def test_a_bad_file_has_an_error_with_its_line(path: Path, tmp_path: Path) -> None:
    problems = judge_files([path], variables=VARIABLES, environment={}, working_directory=tmp_path).problems
    found = [problem for problem in problems if problem.severity is Severity.ERROR]
    assert found
    assert all(problem.file == str(path) for problem in found)
    assert any(problem.line > 0 for problem in found)


@pytest.mark.parametrize(
    ("file", "suggestion"),
    [
        ("section_3.1.xml", "Did you mean response_timeout?"),
        ("section_2.15.3.xml", "Did you mean </high_watermark>?"),
        ("table_3.15_persistence.xml", "Did you mean </persistence>?"),
        ("table_3.3.xml", "The tag is closed twice: write <restore>true</restore>."),
        ("table_3.15_in_memory_state.xml", "The tag is closed twice: write <in_memory_state>true</in_memory_state>."),
    ],
)
def test_a_misprint_of_the_manual_gets_a_suggestion(file: str, suggestion: str, tmp_path: Path) -> None:
    path = ROOT / "misprints" / file
    problems = judge_files([path], variables={}, environment={}, working_directory=tmp_path).problems
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    assert [problem.suggestion for problem in errors] == [suggestion]


@pytest.mark.parametrize("path", ALL, ids=name)
def test_both_validators_agree(path: Path) -> None:
    try:
        document = parse_document(path.read_bytes(), path.name)
    except InvalidFile:
        return  # not well-formed: neither sees it
    substitute(document, VARIABLES, {})
    assert gate_accepts(document.root) == explainer().is_valid(document.root, use_location_hints=False)


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_rendered_xml_validates_and_renders_to_itself(path: Path, tmp_path: Path) -> None:
    services = etree.parse(str(path)).getroot().findall("queuing_service")
    for service in services:
        loaded = load_configuration(
            [path],
            configuration_name=service.get("name"),
            variables=VARIABLES,
            environment={},
            working_directory=tmp_path,
        )
        once = configuration_text(loaded.configuration, with_qos_defaults=True)
        target = tmp_path / "rendered.xml"
        target.write_text(once, encoding="utf-8")
        again = load_configuration(
            [target], configuration_name=None, variables={}, environment={}, working_directory=tmp_path
        )
        assert configuration_text(again.configuration, with_qos_defaults=True) == once
        assert gate_accepts(etree.fromstring(once.encode()))


@pytest.mark.parametrize("path", files("starter"), ids=name)
def test_a_starter_file_has_no_error_in_strict_mode(path: Path, tmp_path: Path) -> None:
    problems = judge_files([path], variables={}, environment={}, working_directory=tmp_path, strict=True).problems
    found = {problem.severity for problem in problems if problem.severity is not Severity.NOTE}
    assert not found


def test_five_faults_of_one_file_are_all_reported_with_their_lines(tmp_path: Path) -> None:
    path = ROOT / "wrong" / "five_faults.xml"
    problems = judge_files([path], variables={}, environment={}, working_directory=tmp_path).problems
    lines = [problem.line for problem in problems if problem.severity is Severity.ERROR]
    marked = [at for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if "fault:" in line]
    assert lines == marked
    assert len(lines) == 5
