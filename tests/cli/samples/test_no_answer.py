"""What a command says where no service answers: which domain, for how long, and what named it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from qsctl.errors import ExitStatus
from tests.commands import command_line

DOMAIN = 93


def error_of(arguments: list[str], **environment: str) -> dict[str, str]:
    done = CliRunner().invoke(command_line(), [*arguments, "--timeout", "0.1s", "-o", "json"], env=environment)
    assert done.exit_code == ExitStatus.NO_ANSWER, done.stderr
    found = json.loads(done.stderr)["error"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("command", [["get", "data"], ["request", "Quotes", "--text", "x"]])
def test_the_domain_is_named_and_what_named_it(command: list[str]) -> None:
    told = error_of([*command, "--service", f"dds:{DOMAIN}"])
    assert told["message"] == f"no service answered in domain {DOMAIN} within 0.1 s"
    assert told["service"] == f"dds:{DOMAIN}, named by --service"
    inherited = error_of(command, QSCTL_SERVICE=f"dds:{DOMAIN}")
    assert inherited["service"] == f"dds:{DOMAIN}, named by QSCTL_SERVICE"


@pytest.mark.parametrize("command", [["request", "Quotes", "--text", "x"], ["reply", "Quotes", "--text", "x"]])
def test_requests_refuse_the_embedded_service_of_the_default(command: list[str]) -> None:
    done = CliRunner().invoke(command_line(), command, env={"QSCTL_SERVICE": "", "QSCTL_CONTEXT": ""})
    assert done.exit_code == ExitStatus.USAGE
    assert "'embedded:' is not on DDS" in done.stderr
    assert "--service dds:7" in done.stderr
