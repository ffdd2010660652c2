"""`qsctl validate FILE…`: everything that is wrong with configuration files, in one run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from qsctl.cli.command import command
from qsctl.cli.options import VariableOption, variables_of
from qsctl.cli.results import Block, Plain, Result, Row, TextBlock, plain
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.config.problems import Problem

ConfigNameOption = Annotated[
    str | None, typer.Option("--config-name", metavar="NAME", help="The <queuing_service> to use (-cfgName).")
]
DefaultFilesOption = Annotated[
    bool,
    typer.Option(
        "--default-files/--no-default-files",
        help="Whether USER_QOS_PROFILES.xml and the other default files are loaded before (manual, section 3.1).",
    ),
]

_STYLES: Mapping[str, Literal["bad", "plain", "faint"]] = {"error": "bad", "warning": "plain", "note": "faint"}


@dataclass(frozen=True)
class Validation(Result):
    """The problems of the files, in their order."""

    valid: bool
    file_count: int
    error_count: int
    warning_count: int
    problems: tuple[Mapping[str, Plain], ...]
    texts: tuple[tuple[str, str], ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "severity": "error, warning or note",
        "file": "the file, or the number of a str:// literal",
        "line": "the line in it; 0 for the whole file",
        "path": "the element, tags from the root with names in brackets",
        "message": "what is wrong",
        "found": "the value found",
        "allowed": "the values allowed",
        "suggestion": "what was probably meant, or what to do",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """1 where a file has an error."""
        return ExitStatus.DONE if self.valid else ExitStatus.NO

    def document(self) -> Plain:
        """The counts and the problems."""
        return {
            "valid": self.valid,
            "file_count": self.file_count,
            "error_count": self.error_count,
            "warning_count": self.warning_count,
            "problems": self.problems,
        }

    def rows(self) -> Sequence[Row]:
        """A problem a row."""
        return self.problems

    def blocks(self) -> Sequence[Block]:
        """The problems as a compiler prints them, then a line that sums up."""
        blocks: list[Block] = [TextBlock(text, _STYLES[severity]) for severity, text in self.texts]
        files = _counted(self.file_count, "file")
        counts = f"{_counted(self.error_count, 'error')}, {_counted(self.warning_count, 'warning')}"
        verdict = f"{files} valid ({counts})" if self.valid else f"not valid: {counts} in {files}"
        return [*blocks, TextBlock(verdict, "good" if self.valid else "bad")]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help='Files, or str://"<dds>…</dds>" literals.')],
    var: VariableOption = None,
    config_name: ConfigNameOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Make warnings errors, and refuse spellings of the field.")
    ] = False,
    default_files: DefaultFilesOption = True,
) -> Validation:
    """Check configuration files against the schema and the rules of the manual."""
    from qsctl.cli.validate_transport import transport_problems
    from qsctl.config.load import check_files
    from qsctl.config.problems import Severity, has_errors, strictly

    variables = variables_of(var)
    found: list[Problem] = []
    for file in files:
        of_file = check_files(
            [file],
            configuration_name=config_name,
            variables=variables,
            environment=os.environ,
            working_directory=Path.cwd(),
            default_files=default_files,
            strict=strict,
        )
        if not has_errors(of_file):
            of_file = [*of_file, *transport_problems(file, config_name, variables, default_files=default_files)]
        found.extend(of_file)
    problems = list(dict.fromkeys(strictly(found) if strict else found))
    rows = []
    for problem in problems:
        row = plain(problem)
        assert isinstance(row, Mapping)  # a dataclass is one
        rows.append(row)
    return Validation(
        valid=not has_errors(problems),
        file_count=len(files),
        error_count=sum(problem.severity is Severity.ERROR for problem in problems),
        warning_count=sum(problem.severity is Severity.WARNING for problem in problems),
        problems=tuple(rows),
        texts=tuple((str(problem.severity), str(problem)) for problem in problems),
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "validate",
        panel="Configuration",
        examples=(
            "qsctl validate service.xml  # every problem with its file, line and element",
            "qsctl validate --strict --var DOMAIN=7 service.xml",
            "qsctl validate a.xml b.xml -o json",
        ),
    )(validate)
