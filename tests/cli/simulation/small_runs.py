"""A small scenario, and commands about it in this process."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from tests.commands import command_line

SPARK = ("--master", "local[2]")

SCENARIO = """<?xml version="1.0" encoding="UTF-8"?>
<scenario name="tiny" model="solace" seed="3" horizon="1s" replications="2">
  <port name="p" rate="8 Mbit/s"/>
  <profile name="default"><queue name="D-1" max-depth="100"/></profile>
  <group name="c" port="p" profile="default" count="2" round-trip="1ms"/>
  <traffic name="t" to="c" delivery="direct" cos="1"><poisson rate="1000/s"/><size bytes="1000"/></traffic>
</scenario>
"""


def qsctl(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments])
