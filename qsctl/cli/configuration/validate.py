"""`qsctl validate FILE…`: all problems of configuration files in one run, and whether the service can be served.

Decides what is checked beyond validity. A valid file may require features that this version or its DDS library lacks:
`qsctl serve` refuses it with the same words, and the exit status is 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

import typer

from qsctl.cli.command import Commands
from qsctl.cli.options import VariableOption, WithoutTcpOption, variables_of
from qsctl.cli.output.results import Block, Plain, Result, Row, TextBlock, counted, fields_of
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.declared.problems import Problem

COMMANDS: Final = Commands(panel=SERVICE_PANEL)

ConfigNameOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the <queuing_service> to read (-cfgName).", show_default="the only one"),
]
DefaultFilesOption = Annotated[
    bool,
    typer.Option(
        "--default-files/--no-default-files",
        help="Load USER_QOS_PROFILES.xml and the other default files before [QS 3.1].",
    ),
]

_STYLES: Mapping[str, Literal["bad", "plain", "faint"]] = {
    "error": "bad",
    "unsupported": "bad",
    "warning": "plain",
    "note": "faint",
}


@dataclass(frozen=True)
class Validation(Result):
    """The problems of files, in the order of the files."""

    valid: bool
    served: bool
    file_count: int
    error_count: int
    unsupported_count: int
    warning_count: int
    services: tuple[Mapping[str, Plain], ...]
    problems: tuple[Mapping[str, Plain], ...]
    texts: tuple[tuple[str, str], ...]
    status: ExitStatus

    field_help: ClassVar[Mapping[str, str]] = {
        "valid": "whether no file has an error",
        "served": "whether `qsctl serve` would start every service of the files",
        "services": "each service: its name, its file, whether `qsctl serve` would start it, and its limits",
        "severity": "error, unsupported (valid, and not to be served here), warning or note",
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
        """Return NO for errors or if `qsctl serve` would refuse the service, NOT_FOUND for missing files, else DONE."""
        return ExitStatus.NO if self.valid and not self.served else self.status

    def document(self) -> Plain:
        """Return the counts and the problems."""
        verdict = fields_of(self, "valid", "served", "file_count", "error_count", "unsupported_count", "warning_count")
        return {**verdict, "services": self.services, "problems": self.problems}

    def rows(self) -> Sequence[Row]:
        """Return a row for each problem."""
        return self.problems

    def blocks(self) -> Sequence[Block]:
        """Return the problems in a compiler's format, the worst first, then a summary line."""
        blocks: list[Block] = [TextBlock(text, _STYLES[severity]) for severity, text in self.texts]
        files = counted(self.file_count, "file")
        counts = f"{counted(self.error_count, 'error')}, {counted(self.warning_count, 'warning')}"
        if not self.valid:
            return [*blocks, TextBlock(f"not valid: {counts} in {files}", "bad")]
        verdict = f"{files} valid ({counts})"
        if self.served:
            return [*blocks, TextBlock(verdict, "good")]
        refused, started = (
            ", ".join(str(each["name"]) for each in self.services if each["served"] is served)
            for served in (False, True)
        )
        verdict += f", and not to be served here: {refused}"
        return [*blocks, TextBlock(f"{verdict}; {started} would be" if started else verdict, "bad")]


@COMMANDS.command(
    "validate",
    examples=(
        "qsctl validate service.xml  # every problem with its file, line and element",
        "qsctl validate --strict --var DOMAIN=7 service.xml",
        "qsctl validate a.xml b.xml -o json",
    ),
)
def validate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help='Configuration files, or str://"<dds>…</dds>" literals.')
    ],
    var: VariableOption = None,
    config_name: ConfigNameOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Treat warnings as errors, and refuse lenient spellings.")
    ] = False,
    default_files: DefaultFilesOption = True,
    without_tcp: WithoutTcpOption = False,
) -> Validation:
    """Check configuration files against the schema and the rules of [QS 3], and whether they can be served."""
    from qsctl.config.load import judge_files
    from qsctl.declared.problems import Severity, has_errors, same_problems, status_of, strictly, text_of_same

    variables = variables_of(var)
    found: list[Problem] = []
    services: list[Mapping[str, Plain]] = []
    for file in files:
        judgement = judge_files(
            [file],
            configuration_name=config_name,
            variables=variables,
            environment=os.environ,
            working_directory=Path.cwd(),
            default_files=default_files,
            strict=strict,
            without_tcp=without_tcp,
        )
        found.extend(judgement.problems)
        services += [
            {"name": name, "file": file, "served": served, "limits": fields_of(judgement.limits[name])}
            for name, served in judgement.services.items()
        ]
    problems = list(dict.fromkeys(strictly(found) if strict else found))
    counts = Counter(problem.severity for problem in problems)
    return Validation(
        valid=not has_errors(problems),
        served=all(each["served"] for each in services) and not has_errors(problems),
        file_count=len(files),
        error_count=counts[Severity.ERROR],
        unsupported_count=counts[Severity.UNSUPPORTED],
        warning_count=counts[Severity.WARNING],
        services=tuple(services),
        problems=tuple(fields_of(problem) for problem in problems),
        texts=tuple((str(same[0].severity), text_of_same(same)) for same in same_problems(problems)),
        status=status_of(problems),
    )
