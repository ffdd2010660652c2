"""Transport and security properties that DDS cannot meet here, as `validate` tells them: by name (manual, chapter 9).

Decides: that they are warnings. The file is valid; `qsctl serve` refuses to start with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from qsctl.config.problems import ConfigError, Problem, Severity
from qsctl.config.settings import ServiceConfiguration

_SIGNS: Final = ("dds.transport.", "dds.sec.", "com.rti.serv.")
_NO_TCP: Final = "TCP needs a build of Cyclone DDS that has it; its wheels have none"


def transport_problems(
    file: str, config_name: str | None, variables: Mapping[str, str], *, default_files: bool
) -> list[Problem]:
    """What a file's participants ask of DDS and do not get.

    The file is valid. One with several services of which none is named is passed over.
    """
    if not _mentions_properties(file):
        return []
    from qsctl.config.load import load_configuration

    try:
        loaded = load_configuration(
            [file],
            configuration_name=config_name,
            variables=variables,
            environment=os.environ,
            working_directory=Path.cwd(),
            default_files=default_files,
        )
    except ConfigError:
        return []
    return [
        Problem(
            Severity.WARNING,
            file,
            0,
            f"dds/queuing_service[{loaded.configuration.name}]/{where}/participant_qos/property",
            "DDS cannot do this here",
            name,
            reason,
            "Without it the service starts; with it `qsctl serve` refuses.",
        )
        for where, qos in _participants(loaded.configuration)
        for name, reason in _unmet(qos)
    ]


def _mentions_properties(file: str) -> bool:
    text = file
    if not file.startswith("str://"):
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
    return any(sign in text for sign in _SIGNS)


def _participants(configuration: ServiceConfiguration) -> Iterator[tuple[str, Mapping[str, str]]]:
    if configuration.administration is not None:
        yield "administration", configuration.administration.qos
    if configuration.monitoring is not None:
        yield "monitoring", configuration.monitoring.qos
    for participant in configuration.service.participants:
        yield f"domain_participant[{participant.name}]", participant.qos


def _unmet(qos: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from qsctl.transport.dds.tcp import LOAD_PLUGINS, map_transport, properties_of

    mapping = map_transport(properties_of(qos.get("participant_qos", "")))
    if mapping.tcp is not None:
        yield LOAD_PLUGINS, _NO_TCP
    for unmet in mapping.unmet:
        yield unmet.name, unmet.reason
