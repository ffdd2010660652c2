"""Options of commands that work on a service: its location, the longest wait for it, and which of several is meant.

A command has one parameter of one of these groups, and opens the service with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.context.use import ContextOption
from qsctl.cli.location import open_connection
from qsctl.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

ANY_SERVICE: Final = "*"
_service_option = partial(typer.Option, rich_help_panel="Service")

LocationOption = Annotated[
    str,
    _service_option(
        envvar="QSCTL_SERVICE",
        help="Location of the service: 'embedded:' (in the state directory), 'embedded:FILE.xml' (configured by a "
        "file), 'embedded:FILE.xml#NAME' (by one of its services), or 'dds:DOMAIN'.",
    ),
]
DdsLocationOption = Annotated[
    str,
    _service_option(
        envvar="QSCTL_SERVICE", help="Location of a running service, dds:DOMAIN; an embedded one answers no requests."
    ),
]
StateDirOption = Annotated[
    Path, _service_option(envvar="QSCTL_STATE_DIR", help="Directory in which the embedded service keeps its state.")
]
DiscardOption = Annotated[
    bool,
    _service_option(
        "--discard-damaged",
        help="Start without the samples of the embedded service that can no longer be read; keep damaged files under "
        "another name.",
    ),
]
KeyFileOption = Annotated[
    Path | None,
    _service_option(
        envvar="QSCTL_KEY_FILE",
        metavar="FILE",
        help="Key file that commands over DDS are signed with where the service requires it.",
        show_default="no key",
    ),
]
TimeoutOption = Annotated[
    str,
    _service_option(envvar="QSCTL_TIMEOUT", help="Longest wait for an answer, a duration such as 500ms or 10s."),
]
TargetOption = Annotated[
    str,
    _service_option(
        envvar="QSCTL_TARGET",
        metavar="PATTERN",
        help="Application name of the service, or a POSIX pattern such as 'Queuing*'.",
    ),
]
IdempotentOption = Annotated[
    bool,
    typer.Option("--idempotent", help="Count as done what exists as given, or is gone already."),
]
QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help="Q, SUBSCRIBER/Q, PARTICIPANT/SUBSCRIBER/Q, TOPIC@SUBSCRIBER, or a resource identifier.",
        show_default=False,
    ),
]
SelectOption = Annotated[
    str,
    typer.Option(
        metavar="SELECTOR",
        help="Selector of samples, as in '@sample_queue_status = SENT_MESSAGE_STATUS'.",
        show_default="every sample",
    ),
]


@dataclass(frozen=True)
class ServiceOptions(OptionGroup):
    """The options that locate the service of a command."""

    context: ContextOption = None
    service: LocationOption = "embedded:"
    state_dir: StateDirOption = Path(".qsctl")
    timeout: TimeoutOption = "10s"
    discard_damaged: DiscardOption = False
    key_file: KeyFileOption = None

    @property
    def begins_now(self) -> bool:
        """Return whether the command would create the service: an embedded one without any state."""
        return self.service == "embedded:" and not (self.state_dir / "instance.json").exists()

    @property
    def leaves_between_looks(self) -> bool:
        """Return whether a command that waits must close the service between reads, for others to use it."""
        return self.service.startswith("embedded:")

    @contextmanager
    def open(self, target: str = ANY_SERVICE, *, any_configuration: bool = False) -> Iterator[Administration]:
        """Connect to the service; raises as `location.open_connection`.

        Args:
            target: application name, or a pattern, of the services that commands are sent to.
            any_configuration: accept a service that is configured otherwise than its file: to stop it, or to change
                that.
        """
        from qsctl.cli.output.render import note
        from qsctl.client.administration import Administration

        with open_connection(
            self.service,
            self.state_dir,
            self.timeout,
            any_configuration=any_configuration,
            discard_damaged=self.discard_damaged,
            key_file=self.key_file,
        ) as connection:
            administration = Administration(connection, target)
            administration.on_notice = lambda text: note(f"Warning: {text}")
            yield administration


@dataclass(frozen=True)
class TargetOptions(ServiceOptions):
    """The options of the services that a command is sent to: one, unless the pattern matches several."""

    target: TargetOption = ANY_SERVICE

    @contextmanager
    def open(self, target: str = "", *, any_configuration: bool = False) -> Iterator[Administration]:
        """Connect to the services of `--target`; raises as `ServiceOptions.open`."""
        with super().open(target or self.target, any_configuration=any_configuration) as administration:
            yield administration


@dataclass(frozen=True)
class DdsOptions(OptionGroup):
    """The options of a service that can be reached over DDS only."""

    context: ContextOption = None
    service: DdsLocationOption = "embedded:"
    timeout: TimeoutOption = "10s"
