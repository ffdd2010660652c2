"""`qsctl get config`: the present configuration of a running service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock
from qsctl.cli.service_options import TargetOptions

COMMANDS: Final = Commands()


@dataclass(frozen=True)
class LiveConfiguration(Result):
    """A service's configuration as values by path, and as XML."""

    service: str
    values: tuple[Mapping[str, Plain], ...]
    text: str

    field_help: ClassVar[Mapping[str, str]] = {
        "path": "place of the value in the configuration",
        "value": "the value, with its unit where it is a duration",
        "service": "application name of the service",
    }

    def document(self) -> Plain:
        """Return the service and its values."""
        return {"service": self.service, "values": self.values}

    def rows(self) -> Sequence[Row]:
        """Return a row for each value."""
        return [{**each, "service": self.service} for each in self.values]

    def xml(self) -> str:
        """Return the configuration as a file for `qsctl diff`, `validate` and `serve`."""
        return self.text

    def blocks(self) -> Sequence[Block]:
        """Return a table of the values."""
        return [TableBlock([Column("path", "Path"), Column("value", "Value")], self.values)]


@COMMANDS.command(
    "config",
    examples=(
        "qsctl get config -o xml > now.xml  # a file that qsctl diff compares to nothing",
        "qsctl get config --service dds:7",
    ),
)
def get_config(*, service: TargetOptions) -> LiveConfiguration:
    """Show the configuration of a service as it is now, with -o xml as a file.

    Queues that were created, changed or deleted by commands have their current values; everything else has the values
    of the start.
    """
    from qsctl.client.desired.execution import live_configuration
    from qsctl.config.configuration_xml import configuration_text, service_element
    from qsctl.config.flatten import values_of

    with service.open() as administration:
        name, configuration = live_configuration(administration)
    values = [{"path": path, "value": value} for path, value in values_of(service_element(configuration))]
    return LiveConfiguration(name, tuple(values), configuration_text(configuration))
