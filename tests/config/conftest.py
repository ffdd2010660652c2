"""A whole service around a snippet, and short ways to load and check XML text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from qsctl.config.load import LoadedConfiguration, judge_files, load_configuration
from qsctl.declared.problems import InvalidFile, Problem, Severity


@dataclass(frozen=True)
class ServiceText:
    """The parts of a service as XML text; `xml` puts them together."""

    dds: str = ""
    service: str = ""
    participant: str = ""
    subscriber: str = ""
    sessions: str = '<session name="A"/>'
    queue: str = ""
    queue_qos: str = ""
    attributes: str = ' name="Q" session="A"'
    topic: str = "<topic_name>T</topic_name>"
    type: str = "<type_name>DDS::Octets</type_name>"
    domain: str = "<domain_id>1</domain_id>"
    session_settings: str = ""

    def xml(self) -> str:
        queue_qos = f"<queue_qos>{self.queue_qos}</queue_qos>" if self.queue_qos else ""
        sessions = self.session_settings or f"<session_settings>{self.sessions}</session_settings>"
        return f"""<dds>
{self.dds}
<queuing_service name="S">
{self.service}
<domain_participant name="P">
{self.domain}
{self.participant}
<shared_subscriber name="U">
{sessions}
{self.subscriber}
<shared_reader_queue{self.attributes}>
{self.topic}
{self.type}
{queue_qos}
{self.queue}
</shared_reader_queue>
</shared_subscriber>
</domain_participant>
</queuing_service>
</dds>"""


Load = Callable[..., LoadedConfiguration]
Check = Callable[..., list[Problem]]

GIVEN_TO_SERVE = {"application_name", "domain_id_base"}
"""Options that `qsctl serve` has and `qsctl validate` has not."""


@pytest.fixture
def text() -> type[ServiceText]:
    return ServiceText


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def run(*texts: str, variables: Mapping[str, str] | None = None, **options: Any) -> LoadedConfiguration:
        options = {"configuration_name": None, "environment": {}, "working_directory": tmp_path, **options}
        return load_configuration(_literals(texts), variables=variables or {}, **options)

    return run


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(*texts: str, variables: Mapping[str, str] | None = None, **options: Any) -> list[Problem]:
        is_served = not GIVEN_TO_SERVE.isdisjoint(options)
        options = {"variables": variables or {}, "environment": {}, "working_directory": tmp_path, **options}
        if not is_served:
            return list(judge_files(_literals(texts), **options).problems)
        try:
            return list(load_configuration(_literals(texts), configuration_name=None, **options).problems)
        except InvalidFile as error:
            return list(error.problems)

    return run


def _literals(texts: tuple[str, ...]) -> list[str]:
    return ['str://"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in texts]


@pytest.fixture
def errors(check: Check) -> Check:
    def run(*texts: str, **options: Any) -> list[Problem]:
        return [problem for problem in check(*texts, **options) if problem.severity is Severity.ERROR]

    return run
