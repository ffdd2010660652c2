"""`qsctl render FILE`: the effective configuration, with variables, inheritance and defaults resolved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.configuration.validate import ConfigNameOption, DefaultFilesOption
from qsctl.cli.options import VariableOption, variables_of
from qsctl.cli.output.render import note
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, plain
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.errors import NotFound

COMMANDS: Final = Commands(panel=SERVICE_PANEL)


@dataclass(frozen=True)
class EffectiveConfiguration(Result):
    """A configuration as settings, as values by path, and as XML."""

    name: str
    configuration: Plain
    values: tuple[Mapping[str, Plain], ...]
    text: str
    with_origins: bool

    field_help: ClassVar[Mapping[str, str]] = {
        "path": "place of the value in the effective configuration",
        "value": "the value, with its unit where it is a duration",
        "origin": "with --origins: the file and line, the default's section, or what it is inherited from",
    }

    def document(self) -> Plain:
        """Return the settings by name, with units in the names; with --origins also the origin of each."""
        document: dict[str, Plain] = {"name": self.name, "configuration": self.configuration}
        if self.with_origins:
            document["values"] = self.values
        return document

    def rows(self) -> Sequence[Row]:
        """Return a row for each value."""
        return self.values

    def xml(self) -> str:
        """Return the canonical XML, which validates, and which renders to itself."""
        return self.text

    def blocks(self) -> Sequence[Block]:
        """Return a table of the values for each entity."""
        columns = [Column("path", "Path"), Column("value", "Value")]
        if self.with_origins:
            columns.append(Column("origin", "Origin"))
        return [TableBlock(columns, rows, title=title) for title, rows in self._by_entity().items()]

    def _by_entity(self) -> dict[str, list[Row]]:
        """Return the values grouped by the service, participant, subscriber, session or queue that they belong to."""
        entities: dict[str, list[Row]] = {}
        for row in self.values:
            path = str(row["path"])
            at = path.rfind("]/") + 1
            entity = path[:at].replace(f"queuing_service[{self.name}]/", "", 1) or path[:at]
            entities.setdefault(entity, []).append({**row, "path": path[at + 1 :]})
        return entities


def _with_qos_as_data(value: Plain) -> Plain:
    """Return the settings with QoS as nested data in place of XML text."""
    from qsctl.config.qos_libraries.qos_tree import as_data

    if isinstance(value, Mapping):
        return {
            key: plain({tag: as_data(str(text)) for tag, text in inner.items()})
            if key == "qos" and isinstance(inner, Mapping)
            else _with_qos_as_data(inner)
            for key, inner in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_with_qos_as_data(inner) for inner in value]
    return value


@COMMANDS.command(
    "render",
    examples=(
        "qsctl render service.xml --origins  # every value, and where it comes from",
        "qsctl render service.xml --origins --path '*redelivery*'",
        "qsctl render service.xml -o xml > effective.xml",
        "qsctl render profiles.xml service.xml --config-name Orders -o json",
    ),
)
def render_configuration(
    file: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Configuration files, in the order they are loaded.")
    ],
    config_name: ConfigNameOption = None,
    var: VariableOption = None,
    origins: Annotated[
        bool,
        typer.Option(
            "--origins", help="Show the origin of each value: a file's line, a default, or an inherited value."
        ),
    ] = False,
    path: Annotated[
        str | None,
        typer.Option(
            metavar="GLOB",
            help="Pattern of the paths of the values to show, as in '*redelivery*'.",
            show_default="every value",
        ),
    ] = None,
    domain_id_base: Annotated[
        int, typer.Option(metavar="ID", help="Number that is added to every domain id (-domainIdBase).")
    ] = 0,
    default_files: DefaultFilesOption = True,
) -> EffectiveConfiguration:
    """Show the effective configuration: variables, inheritance and defaults resolved."""
    from dataclasses import fields
    from fnmatch import fnmatchcase

    from qsctl.config.configuration_xml import configuration_text, service_element
    from qsctl.config.flatten import origin_at, values_of
    from qsctl.config.load import load_configuration
    from qsctl.declared.problems import unsupported

    loaded = load_configuration(
        file,
        configuration_name=config_name,
        variables=variables_of(var),
        environment=os.environ,
        working_directory=Path.cwd(),
        domain_id_base=domain_id_base,
        default_files=default_files,
    )
    for problem in unsupported(loaded.problems):
        note(f"qsctl serve refuses this configuration: {problem.message}")
    configuration = loaded.configuration
    known = dict(loaded.origins)
    pattern = path and path.replace("[", "[[]")  # names are in brackets, which are not patterns here
    values: list[Mapping[str, Plain]] = []
    for place, value in values_of(service_element(configuration, with_qos_defaults=True)):
        if pattern is not None and not fnmatchcase(place, pattern):
            continue
        row: dict[str, Plain] = {"path": place, "value": value}
        if origins:
            row["origin"] = origin_at(known, place)
        values.append(row)
    if pattern is not None and not values:
        raise NotFound(f"no value's path matches {path!r}", remedy="Paths are long: put '*' around a part of one.")
    settings = {
        each.name: _with_qos_as_data(plain(getattr(configuration, each.name)))
        for each in fields(configuration)
        if each.name not in {"types", "qos_libraries", "name"}
    }
    settings["types"] = list(configuration.types.definitions)
    return EffectiveConfiguration(
        name=configuration.name,
        configuration=settings,
        values=tuple(values),
        text=configuration_text(configuration, with_qos_defaults=True),
        with_origins=origins,
    )
