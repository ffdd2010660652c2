"""The reference lists what there is: every command, field, setting, element, metric and variable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

import qsctl
from qsctl.cli.help._command_tree import commands
from qsctl.cli.help.reference import REFERENCES
from qsctl.cli.help.reference.markdown import table, text_in_markdown
from qsctl.config.form import settings_in
from qsctl.config.tables.service import SERVICE
from qsctl.errors import EXIT_STATUS_MEANINGS, ExitStatus
from qsctl.shipped import shipped

PACKAGE = Path(qsctl.__file__).parent
PROMISED = Path(__file__).with_name("promised_fields.txt")
XS = "{http://www.w3.org/2001/XMLSchema}"


def made(name: str) -> str:
    return REFERENCES[name].page()


def test_every_command_is_there_with_its_options() -> None:
    text = made("reference-commands")
    for each in commands():
        assert f"### qsctl {each.name}\n" in text
        for parameter in each.parameters:
            assert f"`{parameter.name}" in text, parameter


def test_every_field_of_every_command_is_there() -> None:
    text = made("reference-output")
    for each in commands():
        assert f"qsctl {each.name}" in text
        for field in each.result.field_help:
            assert f"| `{field}` |" in text


def test_no_promised_field_has_gone() -> None:
    """New ones are promised with a release: add what `promised()` yields to the file."""
    there = set(promised())
    assert [line for line in PROMISED.read_text(encoding="utf-8").splitlines() if line not in there] == []


def promised() -> list[str]:
    return [f"{each.name}: {field}" for each in commands() for field in each.result.field_help]


def test_every_exit_status_has_a_meaning() -> None:
    assert set(EXIT_STATUS_MEANINGS) == set(ExitStatus)
    text = made("reference-exit-statuses")
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {*map(int, ExitStatus)}


def test_every_setting_is_there_with_its_section() -> None:
    sections = re.split(r"^## ", made("reference-settings"), flags=re.MULTILINE)
    rows = {
        (section.partition("\n")[0], row)
        for section in sections
        for row in re.findall(r"^\| `([^`]+)` \| .*(?:section|Table|extension)", section, re.MULTILINE)
    }
    missing = []
    for place in settings_in(SERVICE):
        found = [True for element, row in rows if f"{element}/{row}".removeprefix("queuing_service/") == place.path]
        if not found:
            missing.append(place.path)
    assert missing == []


def test_every_element_and_attribute_of_a_scenario_is_there() -> None:
    text = made("reference-scenario")
    schema = etree.parse(str(shipped("schemas/qsctl_simulation.xsd"))).getroot()
    names = {str(each.get("name")) for each in schema.iter(f"{XS}element")}
    assert [name for name in names if f"`<{name}>`" not in text] == []
    attributes = {str(each.get("name")) for each in schema.iter(f"{XS}attribute")}
    assert [name for name in attributes if f"| `{name}`" not in text] == []


def test_every_variable_that_is_read_is_there() -> None:
    text = made("reference-environment")
    pattern = re.compile(r"""(?:environ(?:ment)?(?:\.get\(|\[)|envvar=|VARIABLE: Final = )["']([A-Z_]+)["']""")
    read = {name for path in PACKAGE.rglob("*.py") for name in pattern.findall(path.read_text(encoding="utf-8"))}
    assert {"QSCTL_SERVICE", "NO_COLOR", "NDDSHOME"} <= read
    assert [name for name in sorted(read) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", REFERENCES)
def test_every_table_has_as_many_cells_in_each_row(name: str) -> None:
    for block in re.findall(r"(?:^\|.*\n)+", made(name), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block[:200]


def test_a_cell_holds_any_text() -> None:
    assert table(("a",), [("x | y\nz",)]).splitlines()[-1] == r"| x \| y z |"
    assert text_in_markdown("<a> *b* [c] `<d>`") == r"\<a> \*b\* \[c] `<d>`"
