"""Objects that most workers of a whole run need and keep, made once before the workers are forked."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from qsctl.config.files.schema import explainer
from tests import fork_server
from tests.commands import command_line


def prepare() -> None:
    """Make the command line, the validator that explains, the descriptions of types, and hypothesis's characters."""
    CliRunner().invoke(command_line(), ["--version"])
    explainer()
    fork_server._prepare()
    _draw()


@settings(max_examples=1, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(), st.binary(), st.floats())
def _draw(_text: str, _octets: bytes, _number: float) -> None: ...
