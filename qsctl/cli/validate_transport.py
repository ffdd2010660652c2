"""Transport and security properties and QoS policies that DDS cannot meet here, as `validate` tells them: by name.

Decides: that they are warnings. The file is valid. With a property that cannot be met (manual, chapter 9) `qsctl serve`
refuses to start; without a policy that the library lacks (Table 3.14) it runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from qsctl.config.problems import ConfigError, Problem, Severity
from qsctl.config.settings import ServiceConfiguration

_SIGNS: Final = ("dds.transport.", "dds.sec.", "com.rti.serv.", "<datareader_qos", "<datawriter_qos")
_DELIVERY_QOS: Final = ("datareader_qos", "datawriter_qos")
"""The elements of a queue that reach its endpoints."""
_REFUSED: Final = "Without it the service starts; with it `qsctl serve` refuses."
_NO_POLICY: Final = "Cyclone DDS has no such policy, or delivery sets it itself"
_WITHOUT: Final = "`qsctl serve` runs without it."
_NO_TCP: Final = "TCP needs a build of Cyclone DDS that has it; its wheels have none"


def transport_problems(
    file: str, config_name: str | None, variables: Mapping[str, str], *, default_files: bool
) -> list[Problem]:
    """What a file's participants and queues ask of DDS and do not get.

    The file is valid. One with several services of which none is named is passed over.
    """
    if not _mentions_dds(file):
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
            f"dds/queuing_service[{loaded.configuration.name}]/{where}",
            "DDS cannot do this here",
            name,
            reason,
            consequence,
        )
        for where, name, reason, consequence in (
            *_unmet_properties(loaded.configuration),
            *_unmet_policies(loaded.configuration),
        )
    ]


def _mentions_dds(file: str) -> bool:
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


def _unmet_properties(configuration: ServiceConfiguration) -> Iterator[tuple[str, str, str, str]]:
    from qsctl.transport.dds.tcp import LOAD_PLUGINS, map_transport, properties_of

    for holder, qos in _participants(configuration):
        where = f"{holder}/participant_qos/property"
        mapping = map_transport(properties_of(qos.get("participant_qos", "")))
        if mapping.tcp is not None:
            yield where, LOAD_PLUGINS, _NO_TCP, _REFUSED
        for unmet in mapping.unmet:
            yield where, unmet.name, unmet.reason, _REFUSED


def _unmet_policies(configuration: ServiceConfiguration) -> Iterator[tuple[str, str, str, str]]:
    from qsctl.transport.dds.qos import map_qos

    for participant in configuration.service.participants:
        for subscriber in participant.subscribers:
            for queue in subscriber.queues:
                holder = (
                    f"domain_participant[{participant.name}]/shared_subscriber[{subscriber.name}]"
                    f"/shared_reader_queue[{queue.name}]"
                )
                for tag in _DELIVERY_QOS:
                    for policy in map_qos(queue.qos.get(tag, "")).unsupported:
                        yield f"{holder}/{tag}/{policy}", f"<{policy}>", _NO_POLICY, _WITHOUT
