"""`qsctl context add`, `use`, `list` and `remove`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.broker.access import CHARACTERS_MAX, Credentials, Secret, parse_address
from qsctl.cli.command import Commands
from qsctl.cli.context.file import BROKER, OPTIONS, Context, changed_contexts, configuration_file, read_contexts
from qsctl.cli.output.results import Column, Done, ListResult, Row, TableBlock
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.errors import UsageError

COMMANDS: Final = Commands(panel=SERVICE_PANEL, group="context", help="Name services, and choose the one in use.")

NameArgument = Annotated[str, typer.Argument(metavar="CONTEXT", help="Name of the context.", show_default=False)]


class SecretKind(StrEnum):
    """The kinds of credentials for a broker."""

    PASSWORD = "password"
    TOKEN = "token"


@dataclass(frozen=True)
class ContextList(ListResult):
    """All contexts."""

    contexts: tuple[Context, ...]
    in_use: str

    field_help: ClassVar[Mapping[str, str]] = {
        "name": "name of the context",
        "in_use": "whether commands use it",
        "service": "location of the service; null: not in the context",
        "state_dir": "directory of an embedded service; null: not in the context",
        "timeout": "longest wait for an answer; null: not in the context",
        "target": "application name or pattern; null: not in the context",
        "key_file": "file of the key that commands are signed with; null: not in the context",
        "broker": "address of the broker that --broker CONTEXT asks; null: not in the context",
        "broker_username": "user name for the broker; null: not in the context",
        "broker_ca_file": "file of the authorities whose certificates are trusted; null: those of the system",
        "broker_secret": "password or token, whichever the context has for the broker; null: neither",
    }

    def rows(self) -> Sequence[Row]:
        """Return a row for each context."""
        return [
            {
                "name": each.name,
                "in_use": each.name == self.in_use,
                **{key: each.options.get(key) for key in OPTIONS},
                **{key: each.broker.get(key) for key in BROKER},
                "broker_secret": next((key.removeprefix("broker_") for key in each.secrets), None),
            }
            for each in self.contexts
        ]

    def blocks(self) -> list[TableBlock]:
        """Return a table, with a star at the context in use."""
        rows = [{**row, "mark": "*" if row["in_use"] else ""} for row in self.rows()]
        columns = [Column("mark", ""), Column("name", "Context"), Column("service", "Service")]
        rest = [Column("state_dir", "State directory"), Column("target", "Target"), Column("timeout", "Timeout")]
        rest.append(Column("key_file", "Key file"))
        if any(row["broker"] for row in rows):
            rest += [Column("broker", "Broker"), Column("broker_username", "User")]
        return [TableBlock([*columns, *rest], rows, empty="(no context: `qsctl context add NAME --service …`)")]


@COMMANDS.command(
    "add",
    examples=(
        "qsctl context add prod --service dds:7 --target Billing --use",
        "qsctl context add prod --service dds:7 --key-file /etc/qsctl/admin.key",
        "qsctl context add local --service embedded:queues.xml --state-dir ~/queues",
        "qsctl context add site --broker https://broker.example:943 --broker-username ops --broker-secret password",
    ),
)
def add(
    name: NameArgument,
    service: Annotated[
        str | None,
        typer.Option(metavar="LOCATION", help="Location of the service, as with --service of every command."),
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="Directory in which an embedded service keeps its state.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Longest wait for an answer, a duration such as 10s.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Application name of the service, or a POSIX pattern.")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Key file that commands over DDS are signed with, see `qsctl key`."),
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of a broker's SEMP interface, for --broker CONTEXT of other commands."
        ),
    ] = None,
    broker_username: Annotated[str | None, typer.Option(metavar="NAME", help="User name for the broker.")] = None,
    broker_secret: Annotated[
        SecretKind | None,
        typer.Option(
            help="Kind of the credentials for the broker: they are typed on the terminal, or are the first line of "
            "standard input, and are kept in the file of the contexts, which only its owner can read."
        ),
    ] = None,
    broker_ca_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Certificates of the authorities that are trusted, in PEM.",
            show_default="the system's",
        ),
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Use this context from now on.")] = False,
) -> Done:
    """Name a service or a broker, or give a name another one. Paths become absolute."""
    if not name or name.startswith("-") or any(not each.isprintable() or each.isspace() for each in name):
        raise UsageError(f"{name!r} is not a name for a context", remedy="Choose one without spaces.")
    if service is None and broker is None:
        raise UsageError("there is nothing to name", remedy="Give --service, --broker, or both.")
    if broker is None and (broker_username or broker_secret or broker_ca_file):
        raise UsageError("the broker's address is missing", remedy="Give --broker https://HOST:PORT, too.")
    options = {} if service is None else {"service": _checked_location(service)}
    if state_dir is not None:
        options["state_dir"] = str(state_dir.expanduser().absolute())
    if timeout is not None:
        from qsctl.cli.location import seconds

        seconds(timeout, "--timeout")
        options["timeout"] = timeout
    if target is not None:
        from qsctl.core.admin.target import check_pattern

        options["target"] = check_pattern(target)
    if key_file is not None:
        options["key_file"] = _checked_key_file(key_file, service or "an embedded one")
    reached = {} if broker is None else _checked_broker(broker, broker_username, broker_ca_file)
    secrets = {} if broker_secret is None else {f"broker_{broker_secret}": _secret(broker_secret, broker_username)}
    with changed_contexts() as contexts:
        is_new = name not in contexts.by_name
        contexts.by_name[name] = Context(name, options, reached, secrets)
        contexts.in_use = name if use else contexts.in_use
    return Done(f"context {name} is {'added' if is_new else 'changed'} in {configuration_file()}{', and in use' * use}")


@COMMANDS.command("use", examples=("qsctl context use prod", "qsctl context use ''  # none"))
def use(name: NameArgument) -> Done:
    """Choose the context that commands use; an empty name: none."""
    with changed_contexts() as contexts:
        contexts.in_use = contexts.named(name).name if name else ""
    return Done(f"context {contexts.by_name[name]} is in use" if name else "no context is in use")


@COMMANDS.command("list", examples=("qsctl context list", "qsctl context list -o json"))
def list_contexts() -> ContextList:
    """List the contexts."""
    contexts = read_contexts()
    return ContextList(tuple(contexts.by_name.values()), contexts.in_use)


@COMMANDS.command("remove", examples=("qsctl context remove prod",))
def remove(name: NameArgument) -> Done:
    """Remove a context; the service is not touched."""
    with changed_contexts() as contexts:
        del contexts.by_name[contexts.named(name).name]
        was_in_use = contexts.in_use == name
        contexts.in_use = "" if was_in_use else contexts.in_use
    return Done(f"context {name} is removed{'; no context is in use' * was_in_use}")


def _checked_key_file(key_file: Path, service: str) -> str:
    """Return the absolute path of a key file, after checking that it can be used.

    Raises:
        UsageError: the service is an embedded one, which requires no signature.
        NotFound, Refused, InvalidInput: it cannot be used.
    """
    from qsctl.config.signing_keys import read_keys

    if not service.startswith("dds:"):
        raise UsageError(
            f"--key-file is for services on DDS, not for {service}",
            remedy="Who may write to the directory of an embedded service needs no key for it.",
        )
    path = key_file.expanduser().absolute()
    read_keys(path)
    return str(path)


def _checked_broker(address: str, username: str | None, certificates: Path | None) -> dict[str, str]:
    """Return the settings of a broker in a context, except its secret.

    Raises:
        UsageError: the address or the user name is not valid.
    """
    found = {"broker": str(parse_address(address))}
    if username:
        found["broker_username"] = Credentials(username).username
    if certificates is not None:
        found["broker_ca_file"] = str(certificates.expanduser().absolute())
    return found


def _secret(kind: SecretKind, username: str | None) -> Secret:
    """Read a password or a token: hidden on a terminal, else the first line of standard input.

    Raises:
        UsageError: it is empty or not valid.
    """
    if kind is SecretKind.PASSWORD and not username:
        raise UsageError("a password is of a user", remedy="Give --broker-username, too.")
    if sys.stdin.isatty():
        text = typer.prompt(f"{kind.capitalize()} for the broker", hide_input=True, err=True)
    else:
        text = sys.stdin.readline(CHARACTERS_MAX + 2).rstrip("\r\n")
    if not text:
        raise UsageError(f"the {kind} is empty", remedy="Write it on the first line of standard input.")
    secret = Secret(text)
    Credentials(username or "", secret) if kind is SecretKind.PASSWORD else Credentials(token=secret)
    return secret


def _checked_location(service: str) -> str:
    """Return a location with absolute paths, so that it is the same in every directory.

    Raises:
        UsageError: it is not a location.
    """
    from qsctl.cli.location import check_location

    check_location(service)
    kind, _, rest = service.partition(":")
    if kind == "embedded" and rest:
        file, mark, configuration = rest.partition("#")
        return f"{kind}:{Path(file).expanduser().absolute()}{mark}{configuration}"
    return service
