"""Where the service is: `--service`, `QSCTL_SERVICE`, else an embedded one in the state directory.

Decides: how a location is written and what a wrong one is told. Commands get a `Connection` and never know which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.render import note
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.client.connection import Connection

_EMBEDDED: Final = "embedded"
_DDS: Final = "dds"
_LONGEST_WAIT_S: Final = 10 * 365 * 86_400.0
"""What an infinite wait becomes: ten years of seconds, which every clock can add."""


@contextmanager
def open_connection(service: str, state_dir: Path, timeout: str) -> Iterator[Connection]:
    """A connection to the service at this location.

    Args:
        service: `embedded:`, or `dds:DOMAIN`, see `qsctl.client.dds_location`.
        state_dir: where the embedded service lives; made when it is not there.
        timeout: how long to wait for another command that uses the same state, or for the service's answer.

    Raises:
        UsageError: the location or the timeout is not written as it must be.
        NoAnswer: another command holds the state directory for longer than the timeout.
        Unavailable: DDS does not start on this machine.
    """
    wait_s = seconds(timeout, "--timeout")
    kind, colon, rest = service.partition(":")
    if kind == _DDS and colon:
        from qsctl.client.dds_connection import DdsConnection
        from qsctl.client.dds_location import parse_dds_location

        domain_id, settings = parse_dds_location(rest)
        connection = DdsConnection(domain_id, wait_s, settings)
        try:
            yield connection
        finally:
            connection.close()
        return
    if kind != _EMBEDDED or not colon or rest:
        raise UsageError(
            f"--service {service!r} is no service location",
            remedy="Write embedded: (and the directory in --state-dir), or dds:DOMAIN.",
        )
    from qsctl.service.embedded import open_embedded

    with open_embedded(state_dir, wait_s=wait_s) as embedded:
        try:
            yield embedded
        finally:
            for report in embedded.damage:
                note(f"Warning: {report}")


def seconds(duration: str, option: str) -> float:
    """A duration that an option gave, in seconds; `infinite` is ten years.

    Raises:
        UsageError: it is not a duration; names the option.
    """
    from qsctl.instant import INFINITE_NS, SECOND_NS, parse_duration

    try:
        duration_ns = parse_duration(duration)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", remedy=error.remedy) from None
    return _LONGEST_WAIT_S if duration_ns >= INFINITE_NS else duration_ns / SECOND_NS
