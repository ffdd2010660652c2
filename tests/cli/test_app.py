"""The command line as a whole: quick to start, scriptable, documented."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from qsctl import __version__
from qsctl.cli.app import COMMAND_MODULES, module_path
from qsctl.errors import ExitStatus
from tests.commands import command_line

HEAVY = {
    "numba", "numpy", "pandas", "pyarrow", "pyspark", "altair", "cyclonedds", "lxml", "xmlschema", "pydantic", "lark",
    "yaml", "urllib3", "hcl2", "jinja2", "structlog", "prometheus_client", "qsctl.config",
}  # fmt: skip


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qsctl", *arguments], capture_output=True, text=True, env={**os.environ, **(env or {})}
    )


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from qsctl.cli.app import build_app\n"
        "try:\n    build_app()(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.parametrize("module", COMMAND_MODULES)
def test_the_commands_of_a_module_are_those_that_it_is_imported_for(module: str) -> None:
    app = typer.Typer()
    importlib.import_module(module_path(module)).COMMANDS.add_to(app)
    groups = [each.typer_instance for each in app.registered_groups]
    names = [each.name for each in app.registered_commands] + [each.info.name for each in groups if each is not None]
    assert tuple(names) == COMMAND_MODULES[module]


@pytest.mark.parametrize(
    ("words", "printed", "imported"),
    [
        (["get", "status", "--help"], "Usage: qsctl get status", {"qsctl.cli.administer.get"}),
        (["--version"], f"qsctl {__version__}", set()),
    ],
)
def test_a_command_line_imports_no_other_command(words: list[str], printed: str, imported: set[str]) -> None:
    script = f"import sys\nfrom qsctl.cli.app import main\nsys.argv[1:] = {words}\ntry:\n    main()\n"
    script += "except SystemExit:\n    sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert printed in done.stdout
    commands = {module_path(module) for module in COMMAND_MODULES}
    assert commands & set(done.stderr.split()) == imported


def test_version_is_the_package_s() -> None:
    assert run("--version").stdout == f"qsctl {__version__}\n"


def test_an_unknown_command_is_a_usage_error_on_standard_error() -> None:
    done = run("no-such-command")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-command" in done.stderr


def leaf_commands() -> list[tuple[str, ...]]:
    def walk(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        children = getattr(command, "commands", None)
        if not children:
            return [path]
        return [leaf for name, child in children.items() for leaf in walk(child, (*path, name))]

    return walk(typer.main.get_command(command_line()), ())


@pytest.mark.parametrize("path", leaf_commands(), ids=" ".join)
def test_every_command_has_examples_and_names_its_output_fields(path: tuple[str, ...]) -> None:
    runner = CliRunner()
    help_text = runner.invoke(command_line(), [*path, "--help"])
    assert help_text.exit_code == 0
    assert "Examples:" in help_text.stdout
    assert f"qsctl {' '.join(path)}" in help_text.stdout
    fields = runner.invoke(command_line(), [*path, "--format-help"])
    assert fields.exit_code == 0
    assert fields.stdout.strip(), "a command's output fields are documented"


def test_no_colour_in_a_pipe_and_none_with_no_color() -> None:
    for environment in ({}, {"NO_COLOR": "1"}):
        assert "\x1b" not in run("completion", "bash", env=environment).stdout


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shipped_completion_is_what_the_program_generates(shell: str) -> None:
    generated = subprocess.run(
        [sys.executable, "-c", "from qsctl.cli.app import main; main()"],
        capture_output=True, text=True, env={**os.environ, "_QSCTL_COMPLETE": f"source_{shell}"},
    ).stdout  # fmt: skip
    shipped = json.loads(run("completion", shell, "-o", "json").stdout)["script"]
    assert shipped.strip() == generated.strip()
    assert generated.strip()


def test_a_result_without_xml_lists_its_formats() -> None:
    done = run("completion", "bash", "-o", "xml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "-o table, json" in done.stderr


def test_every_exit_status_is_in_the_help() -> None:
    statuses = {int(each) for each in ExitStatus}
    words = run("--help", env={"COLUMNS": "500"}).stdout.partition("Exit statuses:")[2].partition("Pages:")[0]
    assert {int(found) for found in re.findall(r"\b\d+\b", words)} == statuses
