"""`qsctl debug bundle`: one file with the information that support asks for, without any sample's content.

Decides its content: versions, the machine, a service's queues, counters, configuration and metrics, the names and sizes
of its files, and the end of its logs. A part that cannot be obtained is listed with the reason; the others are
included.
"""

from __future__ import annotations

import json
import os
import platform
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Plain, Result, Row, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import ExitStatus, QsctlError, Refused, UsageError
from qsctl.new_file import new_private_file

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

COMMANDS: Final = Commands(panel=SAMPLES_PANEL, group="debug", help="Collect the files that support asks for.")

LOG_BYTES_MAX: Final = 4 * 1024 * 1024
"""Number of octets that are copied from the end of each log file."""

METRICS_BYTES_MAX: Final = 16 * 1024 * 1024
METRICS_WAIT_S: Final = 10
"""Longest wait for the answer of a service's metrics endpoint, in seconds."""

FILES_MAX: Final = 10_000
"""Largest number of files of a state directory that are listed."""


@dataclass(frozen=True)
class Bundle(Result):
    """The parts of a bundle, and those that could not be obtained."""

    file: str
    parts: tuple[tuple[str, int], ...]
    missing: tuple[tuple[str, str], ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "file": "the ZIP file",
        "parts": "its members, each with its size in bytes",
        "missing": "what could not be had, each with the reason",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return PARTLY_DONE if a part could not be obtained, else DONE."""
        return ExitStatus.PARTLY_DONE if self.missing else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the parts and what is missing."""
        return {
            "file": self.file,
            "parts": [{"name": name, "size_bytes": size} for name, size in self.parts],
            "missing": [{"name": name, "reason": reason} for name, reason in self.missing],
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per part."""
        here: list[Row] = [{"name": name, "size_bytes": size, "reason": ""} for name, size in self.parts]
        return [*here, *({"name": name, "size_bytes": None, "reason": reason} for name, reason in self.missing)]

    def blocks(self) -> Sequence[Block]:
        """Return the file's name and parts, then the missing parts."""
        names = ", ".join(name for name, _ in self.parts)
        return [
            TextBlock(f"{self.file}: {names}", "good"),
            *(TextBlock(f"Without {name}: {reason}", "bad") for name, reason in self.missing),
            TextBlock("It has no payloads. Read the configuration and the logs before you hand it on.", "faint"),
        ]


class _Collection:
    """The parts of a bundle that were obtained so far, and the reasons for missing ones."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.parts: list[tuple[str, int]] = []
        self.missing: list[tuple[str, str]] = []

    def add(self, name: str, make: Callable[[], bytes | str | Plain]) -> None:
        """Add a part to the archive: octets and texts unchanged, other data as JSON; on an error note it as missing."""
        try:
            made = make()
        except (QsctlError, OSError) as error:
            self.missing.append((name, str(getattr(error, "message", error))))
            return
        if not isinstance(made, bytes | str):
            made = json.dumps(made, indent=2, ensure_ascii=False, default=str)
        octets = made if isinstance(made, bytes) else made.encode("utf-8", "backslashreplace")
        self._archive.writestr(name, octets)
        self.parts.append((name, len(octets)))


@COMMANDS.command(
    "bundle",
    examples=(
        "qsctl debug bundle qsctl-debug.zip",
        "qsctl debug bundle qsctl-debug.zip --service dds:57 --log /var/log/queuing.log",
        "qsctl debug bundle qsctl-debug.zip --service dds:57 --metrics-url http://127.0.0.1:9100/metrics",
    ),
)
def bundle(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="ZIP file to write; it must not exist.")],
    log: Annotated[
        list[Path] | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="File of the service's log; the last 4 MiB of it are in the bundle. Repeatable.",
            show_default="no logs",
        ),
    ] = None,
    metrics_url: Annotated[
        str,
        typer.Option(
            "--metrics-url",
            metavar="URL",
            help="Address of the service's metrics, which is http://HOST:PORT/metrics.",
            show_default="no metrics",
        ),
    ] = "",
    *,
    service: TargetOptions,
) -> Bundle:
    """Write a ZIP file for support: versions, machine, queues, counters, configuration, logs.

    No payload is in it. What cannot be had is named, and the exit status is 3. Reading the counters starts the `change`
    counters again from zero.
    """
    if metrics_url:
        _check_address(metrics_url)
    with new_private_file(out) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        found = _Collection(archive)
        found.add("machine.json", _machine)
        found.add("packages.json", _packages)
        for name, make in _of_a_service(service).items():
            found.add(name, make)
        if service.service.startswith("embedded:"):
            found.add("files.json", lambda: _listed(service.state_dir))
        for at, path in enumerate(log or (), 1):
            found.add(f"logs/{at}-{path.name}", lambda path=path: _end_of(path))  # type: ignore[misc]
        if metrics_url:
            found.add("metrics.txt", lambda: _metrics(metrics_url))
    return Bundle(str(out), tuple(found.parts), tuple(found.missing))


def _of_a_service(service: TargetOptions) -> dict[str, Callable[[], Plain]]:
    from qsctl.cli.administer.get_results import Statuses, holdings

    def asked(ask: Callable[[Administration], Plain]) -> Callable[[], Plain]:
        def make() -> Plain:
            with service.open() as administration:
                administration.tolerate_silence()
                return ask(administration)

        return make

    return {
        "status.json": asked(lambda each: Statuses(tuple(each.statuses()), detailed=True).document()),
        "data.json": asked(lambda each: holdings(each.service_data()).document()),
        "configuration.json": asked(
            lambda each: [{"service": one.service, "xml": one.body.xml} for one in each.configurations()]
        ),
    }


def _machine() -> Plain:
    from qsctl.service.process.memory import available_bytes

    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "memory_bytes": available_bytes(),
        "load_average": list(os.getloadavg()),
        "variables": sorted(name for name in os.environ if name.startswith(("QSCTL_", "CYCLONEDDS_"))),
    }


def _packages() -> Plain:
    from qsctl.cli.help.doctor import dds_finding, package_findings, tcp_finding

    return [
        {"part": each.part, "good": each.good, "found": each.found}
        for each in (*package_findings(), dds_finding(), tcp_finding())
    ]


def _listed(directory: Path) -> Plain:
    """Return the names and sizes of the files in a state directory."""
    found: list[Plain] = []
    for path in sorted(directory.rglob("*"))[:FILES_MAX]:
        status = path.lstat()
        found.append(
            {
                "name": str(path.relative_to(directory)),
                "size_bytes": status.st_size,
                "mode": oct(status.st_mode & 0o7777),
                "modified_s": round(status.st_mtime, 3),
            }
        )
    return found


def _end_of(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - LOG_BYTES_MAX))
        return stream.read(LOG_BYTES_MAX)


def _check_address(url: str) -> None:
    """Check that a text is the address of a metrics endpoint.

    Raises:
        UsageError: it is not.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"--metrics-url {url} is not an address", remedy="Write http://HOST:PORT/metrics.")


def _metrics(url: str) -> bytes:
    """Request the metrics of a service.

    Raises:
        OSError: the endpoint cannot be reached, or does not answer in time.
        Refused: it does not answer by HTTP.
    """
    from http.client import HTTPException, IncompleteRead
    from urllib.request import urlopen

    ends_at = time.monotonic() + METRICS_WAIT_S
    octets = b""
    try:
        with urlopen(url, timeout=METRICS_WAIT_S) as answer:
            while len(octets) < METRICS_BYTES_MAX and (part := answer.read1(METRICS_BYTES_MAX - len(octets))):
                octets += part
                if time.monotonic() > ends_at:
                    raise TimeoutError(f"the answer is not whole after {METRICS_WAIT_S} s")
            if answer.length and len(octets) < METRICS_BYTES_MAX:
                raise IncompleteRead(octets, answer.length)
    except (HTTPException, ValueError) as error:
        raise Refused(
            f"{url} does not answer as a metrics port does: {type(error).__name__}: {error}",
            remedy="Name the address of `qsctl serve --metrics-port`.",
        ) from error
    return octets
