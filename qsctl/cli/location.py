"""The location of the service: `--service`, `QSCTL_SERVICE`, else an embedded service in the state directory.

Decides the syntax of a location. Commands get a `Connection` and do not depend on its kind.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.output.render import note
from qsctl.errors import NotFound, UsageError

if TYPE_CHECKING:
    from qsctl.client.connection import Connection
    from qsctl.config.settings import ServiceConfiguration
    from qsctl.instant import Nanoseconds
    from qsctl.service.run.named_configuration import NamedConfiguration

USER_CONFIGURATION_FILE: Final = "USER_QUEUING_SERVICE.xml"
"""The file in the working directory that a new embedded service starts from [QS 3.1]."""

_EMBEDDED: Final = "embedded"
_DDS: Final = "dds"
_LONGEST_WAIT_S: Final = 10 * 365 * 86_400.0
"""The wait that replaces an infinite one: ten years of seconds, which every clock can add."""


@contextmanager
def open_connection(
    service: str,
    state_dir: Path,
    timeout: str,
    *,
    any_configuration: bool = False,
    discard_damaged: bool = False,
    key_file: Path | None = None,
    now: Callable[[], Nanoseconds] = time.time_ns,
) -> Iterator[Connection]:
    """Yield a connection to the service at this location.

    Args:
        service: `embedded:`, `embedded:FILE.xml#NAME` with the configuration of a new instance, or `dds:DOMAIN` as in
            `qsctl.client.dds_location`.
        state_dir: directory of the embedded service's state; created if it does not exist.
        timeout: longest wait for another command that uses the same state, or for the service's answer.
        any_configuration: accept a service that is configured otherwise than its file: to stop it, or to change that.
        discard_damaged: discard the unreadable records of an embedded service, and report them.
        key_file: key that signs the commands for services that require it. An embedded service requires none: a process
            that may write to its directory may do everything.
        now: the wall clock of an embedded service, in Unix nanoseconds.

    Raises:
        UsageError: the location or the timeout is not valid.
        NotFound: a file that it names does not exist.
        Refused: the service in the state directory is configured otherwise than the named file.
        NoAnswer: another command holds the state directory for longer than the timeout.
        Unavailable: DDS does not start on this machine.
        InvalidFile: the configuration of a new embedded instance is not valid; names every problem.
    """
    wait_s = seconds(timeout, "--timeout")
    kind, colon, rest = service.partition(":")
    if kind == _DDS and colon:
        if discard_damaged:
            raise UsageError(
                f"--discard-damaged is for the files of an embedded service, not for {service}",
                remedy="Start that service with qsctl serve --discard-damaged.",
            )
        from qsctl.client.dds_connection import DdsConnection
        from qsctl.client.dds_location import parse_dds_location

        domain_id, settings = parse_dds_location(rest)
        with closing(DdsConnection(domain_id, wait_s, settings, key_file)) as connection:
            yield connection
        return
    check_location(service)
    from qsctl.service.directory.embedded import open_embedded

    named = _named_configuration(rest, is_required=not any_configuration)
    with open_embedded(
        state_dir, configuration=named, wait_s=wait_s, now=now, discard_damaged=discard_damaged
    ) as embedded:
        for warning in embedded.warnings if not any_configuration else ():
            note(f"Warning: {warning}")
        try:
            yield embedded
        finally:
            for report in embedded.damage:
                note(f"Warning: {report}")
            for warning in embedded.warnings_of_failures:
                note(f"Warning: {warning}")


def check_location(service: str) -> None:
    """Check that a text is the location of a service.

    Raises:
        UsageError: it is not.
    """
    kind, colon, rest = service.partition(":")
    if kind == _DDS and colon:
        from qsctl.client.dds_location import parse_dds_location

        parse_dds_location(rest)
    elif kind != _EMBEDDED or not colon:
        raise UsageError(
            f"--service {service!r} is not a service location",
            remedy="Write embedded: or embedded:FILE.xml (and the directory in --state-dir), or dds:DOMAIN.",
        )


def _named_configuration(place: str, *, is_required: bool) -> NamedConfiguration | None:
    """Return the configuration for a new embedded instance: `FILE.xml` or `FILE.xml#NAME`, else the user's own file.

    None if there is neither: the service then has one shared subscriber and no queues.

    Raises:
        NotFound: a file that it names does not exist.
    """
    file, _, name = place.partition("#")
    if not place and not Path(USER_CONFIGURATION_FILE).is_file():
        return None
    from qsctl.config.files.load_order import sources_in_order
    from qsctl.service.run.named_configuration import NamedConfiguration

    sources = [file] if file else []
    ordered = sources_in_order(sources, environment=os.environ, working_directory=Path.cwd())
    digest = hashlib.sha256(place.encode())
    # The value of a variable is not in the sources.
    has_variables = False
    for source in ordered:
        try:
            content = source.path.read_bytes() if source.path is not None else source.literal.encode()
        except FileNotFoundError:
            raise NotFound(
                f"there is no file {source.name}", remedy="Check the path after embedded:, or leave it out."
            ) from None
        except OSError:
            content = b"$("  # reading it as a configuration explains what is wrong
        has_variables |= b"$(" in content
        digest.update(hashlib.sha256(content).digest())

    @cache
    def read() -> ServiceConfiguration:
        from qsctl.config.load import load_configuration
        from qsctl.declared.problems import Severity

        loaded = load_configuration(
            sources,
            configuration_name=name or None,
            variables={},
            environment=os.environ,
            working_directory=Path.cwd(),
        )
        for problem in loaded.problems:
            if (
                problem.severity is not Severity.UNSUPPORTED
            ):  # the embedded service has no transport, and reports the rest
                note(str(problem))
        return loaded.configuration

    return NamedConfiguration(
        read, place or USER_CONFIGURATION_FILE, "" if has_variables else digest.hexdigest(), bool(place) and is_required
    )


def seconds(duration: str, option: str) -> float:
    """Return an option's duration in seconds; ten years for `infinite`.

    Raises:
        UsageError: it is not a duration; names the option.
    """
    from qsctl.instant import INFINITE_NS, SECOND_NS, parse_duration

    try:
        duration_ns = parse_duration(duration)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", remedy=error.remedy) from None
    return _LONGEST_WAIT_S if duration_ns >= INFINITE_NS else duration_ns / SECOND_NS
