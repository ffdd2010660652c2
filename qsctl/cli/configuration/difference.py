"""`qsctl diff A B`: the differences of two configurations in meaning: order is ignored, and defaults are filled in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.configuration.validate import ConfigNameOption, DefaultFilesOption
from qsctl.cli.options import VariableOption, variables_of
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from lxml.etree import _Element

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@dataclass(frozen=True)
class ConfigurationDifference(Result):
    """The values in which two configurations differ."""

    same: bool
    first: str
    second: str
    differences: tuple[Mapping[str, Plain], ...]
    unified: str
    as_unified: bool

    field_help: ClassVar[Mapping[str, str]] = {
        "path": "place of the value in the effective configuration",
        "change": "added, removed or changed",
        "first": "the value in the first configuration; null where it is not there",
        "second": "the value in the second configuration; null where it is not there",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE if the configurations are equal, NO if they differ."""
        return ExitStatus.DONE if self.same else ExitStatus.NO

    def document(self) -> Plain:
        """Return whether the configurations are equal, and the differences."""
        return {"same": self.same, "first": self.first, "second": self.second, "differences": self.differences}

    def rows(self) -> Sequence[Row]:
        """Return a row for each difference."""
        return self.differences

    def blocks(self) -> Sequence[Block]:
        """Return a table of the differences, or a unified diff."""
        if self.same:
            return [TextBlock("The configurations are the same.", "good")]
        if self.as_unified:
            return [TextBlock(self.unified.rstrip("\n"))]
        columns = [
            Column("path", "Path"),
            Column("change", "Change"),
            Column("first", self.first),
            Column("second", self.second),
        ]
        return [TableBlock(columns, self.differences)]


@COMMANDS.command(
    "diff",
    examples=(
        "qsctl diff old.xml new.xml  # the values that differ; exit status 1 if there are any",
        "qsctl diff old.xml new.xml --unified",
        "qsctl diff 'profiles.xml;a.xml' b.xml --config-name Orders -o json",
    ),
)
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="Configuration file, or several separated by semicolons.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Configuration that A is compared with, named as A is.")],
    config_name: ConfigNameOption = None,
    var: VariableOption = None,
    unified: Annotated[
        bool, typer.Option("--unified", "-u", help="Print the lines of XML that differ, as a unified diff.")
    ] = False,
    default_files: DefaultFilesOption = False,
) -> ConfigurationDifference:
    """Compare two configurations: defaults filled in, order ignored. Exits with 1 where they differ."""
    import difflib

    from qsctl.config.flatten import sorted_text, values_of

    variables = variables_of(var)
    one = _effective(first, config_name, variables, default_files)
    other = _effective(second, config_name, variables, default_files)
    left, right = dict(values_of(one)), dict(values_of(other))
    differences: list[Mapping[str, Plain]] = []
    for path in [*left, *(path for path in right if path not in left)]:
        if left.get(path) == right.get(path):
            continue
        change = "removed" if path not in right else "added" if path not in left else "changed"
        differences.append({"path": path, "change": change, "first": left.get(path), "second": right.get(path)})
    lines = difflib.unified_diff(
        sorted_text(one).splitlines(keepends=True), sorted_text(other).splitlines(keepends=True), first, second
    )
    return ConfigurationDifference(not differences, first, second, tuple(differences), "".join(lines), unified)


def _effective(source: str, config_name: str | None, variables: Mapping[str, str], default_files: bool) -> _Element:
    """Return the effective `<dds>` element of a configuration, without the service's own name."""
    from qsctl.config.configuration_xml import configuration_element
    from qsctl.config.load import load_configuration

    loaded = load_configuration(
        [source],
        configuration_name=config_name,
        variables=variables,
        environment=os.environ,
        working_directory=Path.cwd(),
        default_files=default_files,
    )
    element = configuration_element(loaded.configuration, with_qos_defaults=True)
    service = element.find("queuing_service")
    assert service is not None  # the writer has put it there
    del service.attrib["name"]
    return element
