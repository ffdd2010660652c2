"""The folder of a new recording: claimed, with the service's configuration and a `run.json`."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from qsctl import __version__
from qsctl.config.configuration_xml import configuration_text
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import StartRecording
from qsctl.core.settings import ServiceSettings
from qsctl.distribution import require
from qsctl.errors import InvalidInput, UsageError
from qsctl.eventlog.run_folder import (
    CONFIG_FILE,
    SERVICE_FILE,
    Recording,
    RunInfo,
    RunStatus,
    claim_folder,
    describe_text,
    release_claim,
    write_run_info,
)
from qsctl.instant import Nanoseconds

LEVELS: Final = ("counters", "messages", "events")
MODEL: Final = "shared_reader_queue"
"""The model whose table layout is used: the simulated service's."""

MAX_BYTES_MIN: Final = 1 << 20


def check(command: StartRecording) -> None:
    """Check the options of a command to start a recording.

    Raises:
        UsageError: a level, a fraction or a size is invalid.
        InvalidInput: the folder is not empty.
        Unavailable: this installation cannot write recordings.
    """
    require("pyarrow")
    if not command.folder:
        raise UsageError("the recording has no folder", remedy="Name one that is new or empty.")
    if command.level not in LEVELS:
        raise UsageError(
            f"{command.level!r} is not a level of a recording", remedy=f"The levels are {', '.join(LEVELS)}."
        )
    if not 0 < command.sample_share <= 1:
        raise UsageError(
            f"{command.sample_share:g} is not a fraction of the samples", remedy="It is above 0 and at most 1 (100 %)."
        )
    if command.max_bytes and command.max_bytes < MAX_BYTES_MIN:
        raise UsageError(
            f"a recording of at most {command.max_bytes} bytes is too small",
            remedy=f"Give at least {MAX_BYTES_MIN} bytes, or 0 for no limit.",
        )
    folder = Path(command.folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not an empty folder", remedy="A recording never overwrites: name a new one.")


def begin_folder(
    command: StartRecording,
    configuration: ServiceConfiguration,
    settings: ServiceSettings,
    started_at_ns: Nanoseconds,
    *,
    processes: int,
    share_count: int,
) -> tuple[Path, RunInfo]:
    """Claim the folder, and write the files that are known when the recording begins.

    Args:
        command: the requested recording.
        configuration: the service's configuration at its start, for its types and QoS libraries.
        settings: the service's current settings.
        started_at_ns: Unix nanoseconds.
        processes: the number of the service's processes.
        share_count: the number of samples that its queues move in one step; 0: no bound.

    Raises:
        UsageError: an option of the command is invalid.
        InvalidInput: the folder is not empty, or cannot be written.
    """
    check(command)
    folder = Path(command.folder).absolute()
    claim_folder(folder)
    try:
        service = msgspec.json.format(msgspec.json.encode(settings, order="deterministic"), indent=2) + b"\n"
        resolved = replace(configuration, service=settings)
        texts = {SERVICE_FILE: service, CONFIG_FILE: configuration_text(resolved).encode()}
        for name, text in texts.items():
            (folder / name).write_bytes(text)
        digest = blake2b(service + str(started_at_ns).encode(), digest_size=8)
        info = RunInfo(
            run_id=digest.hexdigest(),
            status=RunStatus.RUNNING,
            scenario=settings.application_name,
            model=MODEL,
            seed=0,
            log_level=command.level,
            horizon_ns=1,
            warm_up_ns=0,
            replications=1,
            version=__version__,
            reproduce=f"qsctl replay {folder}",
            files={name: describe_text(text) for name, text in texts.items()},
            recording=Recording(
                service=settings.application_name,
                started_at_ns=started_at_ns,
                sample_share=command.sample_share,
                max_bytes=command.max_bytes,
                processes=processes,
                share_count=share_count,
            ),
        )
        write_run_info(folder, info)
        # What samples hold is for the service's user alone, as in its state directory.
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o700 if each.is_dir() else 0o600)
        release_claim(folder)
    except OSError as error:
        raise InvalidInput(f"{folder}: the recording cannot be written there: {error.strerror}") from None
    return folder, info
