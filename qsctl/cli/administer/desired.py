"""`qsctl plan` and `qsctl apply`: make a running service equal to a configuration file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.administer.desired_results import Planned
from qsctl.cli.command import Commands
from qsctl.cli.configuration.validate import ConfigNameOption
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.options import VariableOption, variables_of
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import ExitStatus, PartlyDone, QsctlError, Refused

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.config.settings import ServiceConfiguration

COMMANDS: Final = Commands(panel=SERVICE_PANEL)

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Configuration file, or several separated by semicolons.")
]


class PlanDeclined(QsctlError):
    """The user answered the confirmation with no."""

    exit_status = ExitStatus.NO


@dataclass(frozen=True)
class DesiredOptions(OptionGroup):
    """The options that select the desired configuration of a file, and permit deletions and replacements."""

    config_name: ConfigNameOption = None
    var: VariableOption = None
    domain_id_base: Annotated[
        int, typer.Option(metavar="ID", help="Number that is added to every domain id (-domainIdBase).")
    ] = 0
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the queues and shared subscribers that are not in the file.")
    ] = False
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Delete and create again the queues that cannot be changed in place."),
    ] = False
    force: Annotated[
        bool, typer.Option("--force", help="Delete also queues that hold samples, with their samples.")
    ] = False

    def wanted(self, file: str, *, is_remote: bool) -> ServiceConfiguration:
        """Return the configuration of a file, checked as by `qsctl validate` and CREATE commands.

        Raises:
            InvalidFile: the file is not valid; contains every problem.
            NotServed: a service on DDS could not provide a configured feature.
            Refused: an embedded service could not.
        """
        from qsctl.config.load import load_configuration
        from qsctl.config.rules.replication import refuse_replication

        loaded = load_configuration(
            [file],
            configuration_name=self.config_name,
            variables=variables_of(self.var),
            environment=os.environ,
            working_directory=Path.cwd(),
            domain_id_base=self.domain_id_base,
        )
        if is_remote:
            loaded.require_served()
        else:
            refuse_replication(loaded.configuration)
        return loaded.configuration

    def planned(self, administration: Administration, file: str, wanted: ServiceConfiguration) -> Planned:
        """Compare a service with the desired configuration; unless forced, a loss of samples is an obstacle."""
        from qsctl.client.connection import KnowsSettings
        from qsctl.client.desired.execution import held_back, live_configuration
        from qsctl.client.desired.plan import Wishes, plan_of

        service, live = live_configuration(administration)
        is_embedded = isinstance(administration.connection, KnowsSettings)
        wishes = Wishes(prune=self.prune, replace=self.replace)
        plan = plan_of(live, wanted, wishes, compares_service=not is_embedded)
        if not self.force:
            plan = replace(plan, obstacles=[*plan.obstacles, *held_back(administration, plan, live)])
        return Planned(service, file, plan)


@COMMANDS.command(
    "plan",
    examples=(
        "qsctl plan queues.xml --service dds:7  # what apply would do; exit status 1 if there is anything",
        "qsctl plan queues.xml --prune -o json",
    ),
)
def plan(file: FileArgument, *, options: DesiredOptions, service: TargetOptions) -> Planned:
    """Show the commands that make a running service equal to a file. Nothing is changed.

    Exits with 1 where there is something to do.
    """
    wanted = options.wanted(file, is_remote=service.service.startswith("dds:"))
    if service.begins_now:
        return _beginning(file, wanted)
    with service.open(any_configuration=True) as administration:
        return options.planned(administration, file, wanted)


@COMMANDS.command(
    "apply",
    examples=(
        "qsctl apply queues.xml",
        "qsctl apply queues.xml --prune --yes --service dds:7",
        "qsctl apply queues.xml --replace --force  # also what cannot be changed in place, with its samples",
    ),
)
def apply(
    file: FileArgument,
    *,
    options: DesiredOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the question on a terminal.")] = False,
    service: TargetOptions,
) -> Planned:
    """Make a running service equal to a file: create, change, and with --prune delete what is not in it.

    Where the plan has obstacles nothing is changed, and the exit status is 7. After an interruption run it again.
    """
    wanted = options.wanted(file, is_remote=service.service.startswith("dds:"))
    if service.begins_now:
        with _begun(service, file, wanted):
            return replace(_beginning(file, wanted), done=0)
    with service.open(any_configuration=True) as administration:
        planned = options.planned(administration, file, wanted)
        if planned.plan.obstacles:
            raise _refusal(planned)
        if planned.plan.steps and not yes:
            _ask(planned)
        return replace(planned, done=_carried_out(administration, planned, force=options.force))


def _carried_out(administration: Administration, planned: Planned, *, force: bool) -> int:
    """Carry out a plan, and return the number of its steps.

    Raises:
        PartlyDone: the service refused a step after others were done.
    """
    from qsctl.client.desired.execution import carry_out

    done = 0
    try:
        for _ in carry_out(administration, planned.plan, force=force):
            done += 1
    except QsctlError as error:
        if not done:
            raise
        failed = planned.plan.steps[done]
        raise PartlyDone(
            f"{done} of {len(planned.plan.steps)} steps are done; {failed.action} {failed.resource}: {error.message}",
            remedy=f"{error.remedy} Run the command again: it goes on from there.".strip(),
        ) from error
    return done


def _ask(planned: Planned) -> None:
    """Show a plan and ask for confirmation; on a terminal only.

    Raises:
        PlanDeclined: the answer is no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    for step in planned.plan.steps:
        typer.echo(f"{step.action} {step.resource}: {step.reason}", err=True)
    if not typer.confirm("Go on?", err=True):
        raise PlanDeclined("nothing was done", remedy="With --yes nothing is asked.")


def _refusal(planned: Planned) -> Refused:
    lines = [f"{each.resource}: {each.what}. {each.how}".rstrip(". ") + "." for each in planned.plan.obstacles]
    return Refused(
        "\n".join([f"service {planned.service} cannot be made equal to {planned.file}; nothing was done", *lines]),
        remedy="`qsctl plan` shows what differs.",
    )


def _beginning(file: str, wanted: ServiceConfiguration) -> Planned:
    from qsctl.client.desired.steps import Plan

    return Planned(wanted.service.application_name, file, Plan(), begins=True)


@contextmanager
def _begun(service: TargetOptions, file: str, wanted: ServiceConfiguration) -> Iterator[None]:
    """Create an embedded service with a configuration."""
    from qsctl.cli.location import seconds
    from qsctl.service.directory.embedded import open_embedded
    from qsctl.service.run.named_configuration import NamedConfiguration

    named = NamedConfiguration(lambda: wanted, file)
    wait_s = seconds(service.timeout, "--timeout")
    with open_embedded(service.state_dir, configuration=named, wait_s=wait_s, discard_damaged=service.discard_damaged):
        yield
