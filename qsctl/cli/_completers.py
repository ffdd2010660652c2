"""Completions for the shell: a completer for each metavar whose values can be listed.

`COMPLETERS` assigns them by metavar, so that a new command's QUEUE is completed like every other. A completer returns
words; those that begin with the typed text are offered, and without any the shell offers file names. A completer is
quick and silent: it starts no service, waits at most `WAIT_S` for one, reads no state directory larger than
`MOST_STATE_BYTES`, and offers nothing after any error. A damaged service is left unchanged, for the next command to
report.
"""

from __future__ import annotations

import copy
import inspect
import os
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.models import ArgumentInfo, OptionInfo

from qsctl.errors import QsctlError

if TYPE_CHECKING:
    from qsctl.client.administration import Administration
    from qsctl.client.connection import Connection

WAIT_S: Final = 0.5
"""The longest wait for a service on DDS, or for another command that uses the state directory."""

MOST_STATE_BYTES: Final = 64 << 20
"""A larger state directory is not opened, since restoring it would take a noticeable time."""

MOST_WORDS: Final = 500


def queues(typed: typer.Context, incomplete: str) -> list[str]:
    """Return the service's queues by unique short names, and with subscriber or topic once one is typed."""
    from qsctl.resource import parse_resource

    with _service(typed) as service:
        hosted = service.hosted().queues
    names = [tuple(name for _, name in parse_resource(each.resource).names) for each in hosted]
    words: list[str] = []
    for each, (participant, subscriber, queue) in zip(hosted, names, strict=True):
        if incomplete.startswith("/"):
            words.append(each.resource)
        elif "/" in incomplete:
            words += [f"{subscriber}/{queue}", f"{participant}/{subscriber}/{queue}"]
        elif "@" in incomplete:
            words.append(f"{each.topic_name}@{subscriber}")
        else:
            is_clear = sum(other[-1] == queue for other in names) == 1
            words.append(queue if is_clear else f"{subscriber}/{queue}")
    return words


def topics_and_queues(typed: typer.Context, incomplete: str) -> list[str]:
    """Return the destinations for samples: queues, and topics by name."""
    with _service(typed) as service:
        topics = [each.topic_name for each in service.hosted().queues if not each.is_dead_letter]
    return [*queues(typed, incomplete), *topics]


def subscribers(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the shared subscribers of the service."""
    with _service(typed) as service:
        return [each.rpartition("/")[2] for each in service.hosted().subscribers]


def participants(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the domain participants of the service."""
    with _service(typed) as service:
        return [each.rpartition("/")[2] for each in service.hosted().participants]


def services(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the application names of the services that answer."""
    with _service(typed) as service:
        return [each.service for each in service.service_data()]


def resources(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return resource identifiers of the service's objects, and of their readable parts such as status."""
    with _service(typed) as service:
        hosted = service.hosted()
    found = [each.resource for each in hosted.queues]
    leaves = [f"{queue}/{leaf}" for queue in found for leaf in ("status", "data", "message")]
    return ["/data", "/status", *hosted.participants, *hosted.subscribers, *found, *leaves]


def scenarios(_typed: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the scenarios that come with qsctl, and XML files."""
    from qsctl.sim.scenario.xml import ready_scenarios

    return [*ready_scenarios(), *_files(incomplete, ".xml")]


def paths(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the paths of `--set` in the scenario on the command line."""
    return [f"{path}=" for path in _paths_of_scenario(typed)]


def bare_paths(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the paths of a scenario that `size --vary` can vary."""
    return _paths_of_scenario(typed)


def runs(_typed: typer.Context, incomplete: str) -> list[str]:
    """Return run folders in the default folder of `qsctl simulate` and in the typed folder, and sweeps."""
    from qsctl.eventlog.run_folder import DEFAULT_PARENT, RUN_FILE

    folders = [*DEFAULT_PARENT.glob(f"*/{RUN_FILE}"), *Path("qsctl-sweeps").glob("*/sweep.json")]
    around = Path(incomplete.rpartition("/")[0] or ".") if incomplete else None
    if around is not None and not incomplete.startswith("~"):
        folders += [*around.glob(f"*/{RUN_FILE}"), *around.glob("*/sweep.json")]
    return [str(each.parent) for each in folders]


def types(typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the built-in types, and those of the service's queues."""
    from qsctl.config.sample_types.type_model import BUILTIN_TYPES

    built_in = list(BUILTIN_TYPES)
    try:
        with _service(typed) as service:
            return [*built_in, *(each.type_name for each in service.hosted().queues if each.type_name)]
    except QsctlError:
        return built_in  # there is no service yet


def contexts(_typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the names of the contexts."""
    from qsctl.cli.context.file import read_contexts

    return list(read_contexts().by_name)


def profile_settings(_typed: typer.Context, _incomplete: str) -> list[str]:
    """Return the settings of client profiles by their names in SEMP v2."""
    from qsctl.profiles.ranges import SETTINGS

    return [each.semp_v2 for each in SETTINGS if each.semp_v2]


def profile_assignments(typed: typer.Context, incomplete: str) -> list[str]:
    """Return the settings of client profiles, each followed by `=`."""
    return [f"{name}=" for name in profile_settings(typed, incomplete)]


Completer = Callable[[typer.Context, str], list[str]]

COMPLETERS: Final[dict[str, Completer]] = {
    "QUEUE": queues,
    "TO_QUEUE": queues,
    "QUEUE_OR_TOPIC": topics_and_queues,
    "S": subscribers,
    "SUBSCRIBER": subscribers,
    "P": participants,
    "PATTERN": services,
    "SERVICE": services,
    "RESOURCE": resources,
    "SCENARIO": scenarios,
    "CONTEXT": contexts,
    "TYPE": types,
    "PATH=VALUE": paths,
    "PATH=V1,V2,…": paths,
    "SETTING": bare_paths,
    "RUN": runs,
    "RUN…": runs,
    "RUN_A": runs,
    "RUN_B": runs,
    "SETTING...": profile_settings,
    "SETTING=VALUE...": profile_assignments,
}
"""Completers by metavar without brackets; a metavar with alternatives, such as FILE|RUN, has the completers of each."""


def with_completer(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a command's parameter with the completer of its metavar, if there is one."""
    kind, *stated = typing.get_args(parameter.annotation) or (parameter.annotation,)
    for at, info in enumerate(stated):
        if isinstance(info, OptionInfo | ArgumentInfo) and info.metavar and info.autocompletion is None:
            words = info.metavar.strip("[]").split("|")
            completers = [COMPLETERS[word] for word in words if word in COMPLETERS]
            if completers:
                stated[at] = copy.copy(info)
                stated[at].autocompletion = _quietly(completers)
                return parameter.replace(annotation=Annotated[(kind, *stated)])
    return parameter


def _quietly(completers: Sequence[Completer]) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            words = [word for completer in completers for word in completer(ctx, incomplete)]
        except Exception:  # the shell shows whatever is printed in the middle of the user's line
            if os.environ.get("QSCTL_DEBUG"):
                raise
            return []
        return [word for word in dict.fromkeys(words) if word.startswith(incomplete)][:MOST_WORDS]

    return complete


@contextmanager
def _service(typed: typer.Context) -> Iterator[Administration]:
    """Yield the service that the command line names.

    Raises:
        NotFound: the state directory has no service, or is too large.
    """
    from qsctl.client.administration import Administration

    given: dict[str, Any] = typed.params
    where = given.get("service") or os.environ.get("QSCTL_SERVICE") or "embedded:"
    state_dir = Path(given.get("state_dir") or os.environ.get("QSCTL_STATE_DIR") or ".qsctl")
    with _connection(str(where), state_dir) as connection:
        yield Administration(connection)


@contextmanager
def _connection(where: str, state_dir: Path) -> Iterator[Connection]:
    kind, _, rest = where.partition(":")
    if kind == "dds":
        from qsctl.client.dds_connection import DdsConnection
        from qsctl.client.dds_location import parse_dds_location

        domain_id, settings = parse_dds_location(rest)
        with closing(DdsConnection(domain_id, WAIT_S, settings)) as remote:
            yield remote
        return
    from qsctl.cli.output.render import note
    from qsctl.errors import NotFound
    from qsctl.service.directory.embedded import open_embedded

    files = [each for each in state_dir.rglob("*") if each.is_file()]
    if not (state_dir / "instance.json").exists() or sum(each.stat().st_size for each in files) > MOST_STATE_BYTES:
        raise NotFound(f"{state_dir} holds no service that can be opened quickly")
    with open_embedded(state_dir, wait_s=WAIT_S) as embedded:
        try:
            yield embedded
        finally:
            for report in embedded.damage:
                note(f"Warning: {report}")


def _paths_of_scenario(typed: typer.Context) -> list[str]:
    from qsctl.cli.options import variables_of
    from qsctl.sim.scenario.overrides.set_values import paths_of
    from qsctl.sim.scenario.xml import find_scenario, read_scenario

    # While an option's value is being completed, the parser has not yet assigned the arguments to their names.
    named = next((word for word in (typed.params.get("scenario"), typed.params.get("a"), *typed.args) if word), None)
    return paths_of(read_scenario(find_scenario(named), variables_of(typed.params.get("var"))))


def _files(incomplete: str, suffix: str) -> list[str]:
    """Return the folders, and the files with a suffix, whose path begins with the typed text."""
    folder, _, name = incomplete.rpartition("/")
    prefix = f"{folder}/" if folder or incomplete.startswith("/") else ""
    found = Path(prefix or ".").glob(f"{name}*")
    return [
        f"{prefix}{each.name}{'/' * each.is_dir()}" for each in sorted(found) if each.is_dir() or each.suffix == suffix
    ]
