"""`qsctl serve`: run a queuing service on DDS [QS 4]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from qsctl.cli.administer._served_configuration import Loading
from qsctl.cli.administer.recording_options import (
    LEVEL_HELP,
    MAX_DEFAULT,
    MAX_HELP,
    SAMPLE_DEFAULT,
    SAMPLE_HELP,
    RecordLevel,
    start_command,
)
from qsctl.cli.command import Commands
from qsctl.cli.options import WITHOUT_TCP_HELP, VariableOption, VersionOption, variables_of
from qsctl.cli.output.render import note
from qsctl.cli.output.results import Done
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.instant import parse_duration

COMMANDS: Final = Commands(panel=SERVICE_PANEL)

_configuration_option = partial(typer.Option, rich_help_panel=SERVICE_PANEL)
_administration_option = partial(typer.Option, rich_help_panel="Administration")
_PERSISTENCE = "Persistence"
_process_option = partial(typer.Option, rich_help_panel="Process")
_recording_option = partial(typer.Option, rich_help_panel="Recording")
_dds_option = partial(typer.Option, rich_help_panel="DDS")


@COMMANDS.command(
    "serve",
    examples=(
        "qsctl serve queues.xml",
        "qsctl serve -cfgFile queues.xml -cfgName QueuingService_1 -remoteAdministrationDomainId 55",
        "qsctl serve queues.xml --metrics-port 9100 --verbosity 3",
        "qsctl serve queues.xml --record monday --record-max 2GB",
        "qsctl serve queues.xml --print-unit > queuing.service",
    ),
)
def serve(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Configuration files, as with --cfg-file.", show_default=False),
    ] = None,
    cfg_file: Annotated[list[str] | None, _configuration_option(help="Configuration file; may be repeated.")] = None,
    config_name: Annotated[
        str | None,
        _configuration_option(
            metavar="NAME", help="Name of the <queuing_service> to run (-cfgName).", show_default="the only one"
        ),
    ] = None,
    var: VariableOption = None,
    app_name: Annotated[
        str | None,
        _configuration_option(
            help="Application name that commands address the service by.", show_default="the configuration's"
        ),
    ] = None,
    members: Annotated[
        str | None,
        _configuration_option(
            metavar="NAME,NAME,…",
            help="Application names of all instances that the cluster is formed with, this one's too unless it joins.",
            show_default="found in the domain",
        ),
    ] = None,
    join: Annotated[
        bool,
        _configuration_option(
            "--join", help="Start as a new member of a running cluster, without a vote until `qsctl member promote`."
        ),
    ] = False,
    master_priority: Annotated[
        int,
        _configuration_option(
            min=0,
            max=100,
            help="Priority of this member as master of replicated queues: they move to the member with the highest.",
        ),
    ] = 0,
    cluster_key: Annotated[
        Path | None,
        _configuration_option(
            metavar="FILE", help="File of the keys that sign the replication messages between the members of a cluster."
        ),
    ] = None,
    accept_unsigned: Annotated[
        bool,
        _configuration_option(
            "--accept-unsigned",
            help="Accept unsigned replication messages, too, while a cluster is given its first key.",
        ),
    ] = False,
    domain_id_base: Annotated[int, _dds_option(help="Number that is added to every domain id of the file.")] = 0,
    cfg_remote: Annotated[
        bool,
        _configuration_option(
            "--cfg-remote",
            help="Load the configuration from other services of the administration domain, before any file.",
        ),
    ] = False,
    cfg_remote_timeout: Annotated[
        int, _configuration_option(min=0, help="Longest wait for --cfg-remote, in seconds; then the files are used.")
    ] = 20,
    remote_administration_domain_id: Annotated[
        int | None, _administration_option(help="Domain id in which remote administration is turned on.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        _administration_option(min=0, max=65535, help="TCP port of the Prometheus metrics; 0: any free port."),
    ] = None,
    metrics_address: Annotated[
        str, _administration_option(help="Network address of the Prometheus metrics.")
    ] = "127.0.0.1",
    persistent_storage_path: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the persistent files.", show_default="the configuration's", rich_help_panel=_PERSISTENCE
        ),
    ] = None,
    persistent_file_prefix: Annotated[
        str | None,
        typer.Option(
            help="Prefix of the names of the persistent files.",
            show_default="the configuration's",
            rich_help_panel=_PERSISTENCE,
        ),
    ] = None,
    discard_damaged: Annotated[
        bool,
        typer.Option(
            "--discard-damaged",
            help="Start without the samples that can no longer be read; keep damaged files under another name.",
            rich_help_panel=_PERSISTENCE,
        ),
    ] = False,
    interface: Annotated[str, _dds_option(help="Network interface, by name or address; lo: this machine only.")] = "lo",
    peer: Annotated[
        list[str] | None, _dds_option(metavar="ADDRESS", help="Address of a node to discover; may be repeated.")
    ] = None,
    lease: Annotated[
        str,
        _dds_option(
            help="DDS liveliness lease, a duration such as 5s: peers drop this process after this much silence."
        ),
    ] = "5s",
    without_tcp: Annotated[bool, _dds_option("--without-tcp", help=WITHOUT_TCP_HELP)] = False,
    daemon: Annotated[
        bool, _process_option("--daemon", help="Run in the background: the command returns once the service serves.")
    ] = False,
    pid_file: Annotated[Path | None, _process_option(help="File that the process id is written to.")] = None,
    log_file: Annotated[Path | None, _process_option(help="File of the log.", show_default="standard error")] = None,
    log_json: Annotated[bool, _process_option("--log-json", help="Log as one JSON object a line.")] = False,
    verbosity: Annotated[
        int,
        _process_option(
            min=0,
            max=6,
            help="Verbosity of the log: 0 silent, 1 exceptions, 2 warnings, 3 information, 4 and DDS warnings, "
            "5 tracing, 6 and DDS tracing.",
        ),
    ] = 1,
    heap_snapshot_period: Annotated[
        int, _process_option(min=0, metavar="SECONDS", help="Time between heap snapshots, in seconds; 0: no snapshots.")
    ] = 0,
    heap_snapshot_dir: Annotated[Path, _process_option(help="Directory of the heap snapshots.")] = Path(),
    grace: Annotated[
        str, _process_option(help="Longest wait for acknowledgments of consumers after a stop, a duration such as 2s.")
    ] = "2s",
    record: Annotated[
        Path | None,
        _recording_option(
            metavar="DIR", help="Folder that what the service does is recorded into, new or empty; see `qsctl record`."
        ),
    ] = None,
    record_level: Annotated[RecordLevel, _recording_option(help=LEVEL_HELP)] = RecordLevel.MESSAGES,
    record_max: Annotated[str, _recording_option(metavar="SIZE", help=MAX_HELP)] = MAX_DEFAULT,
    record_sample: Annotated[str, _recording_option(metavar="SHARE", help=SAMPLE_HELP)] = SAMPLE_DEFAULT,
    print_unit: Annotated[
        bool, typer.Option("--print-unit", help="Print a systemd unit for this command line and exit.")
    ] = False,
    _version: VersionOption = False,
) -> Done:
    """Run a queuing service until SIGTERM, SIGINT or a SHUTDOWN command.

    The options of [QS Table 4.1] are understood in its spelling too, as in -cfgFile and -cfgName.
    """
    from qsctl.errors import UsageError
    from qsctl.service.process.background import in_background, systemd_unit

    sources = [*(files or ()), *(cfg_file or ())]
    if print_unit:
        return Done(systemd_unit(sys.argv[1:]))
    if cfg_remote and remote_administration_domain_id is None:
        raise UsageError(
            "-cfgRemote needs -remoteAdministrationDomainId",
            remedy="Name the domain in which the other services are administered.",
        )
    from qsctl.service.process.start import StartOptions, run_service

    options = StartOptions(
        interface=interface,
        peers=tuple(peer or ()),
        lease_duration_ns=parse_duration(lease),
        administration_domain_id=remote_administration_domain_id,
        metrics_port=metrics_port,
        metrics_address=metrics_address,
        runs_in_background=daemon,
        grace_ns=parse_duration(grace),
        verbosity=verbosity,
        log_file=log_file,
        log_json=log_json,
        pid_file=pid_file,
        heap_snapshot_period_s=heap_snapshot_period,
        heap_snapshot_directory=heap_snapshot_dir,
        record=None if record is None else start_command(record.absolute(), record_level, record_max, record_sample),
        members=tuple(each.strip() for each in members.split(",") if each.strip()) if members else (),
        joins=join,
        master_priority=master_priority,
        cluster_key_file=cluster_key,
        accepts_unsigned=accept_unsigned,
        discards_damaged=discard_damaged,
        without_tcp=without_tcp,
    )
    loading = Loading(
        tuple(sources),
        config_name,
        variables_of(var),
        app_name,
        domain_id_base,
        persistent_storage_path,
        persistent_file_prefix,
        without_tcp,
    )

    def run(on_start: Callable[[str], None]) -> str:
        configuration, loaded_options = loading.from_others(options, cfg_remote_timeout)
        return run_service(configuration, loaded_options, on_start)

    if cfg_remote:  # not before the fork: it needs DDS
        name = app_name or config_name or "of another's configuration"
    else:
        configuration, options = loading.from_files(options)
        options = replace(options, reread=lambda: loading.from_files(options)[0])
        name = configuration.service.application_name
        run = partial(run_service, configuration, options)
    if daemon:
        pid = in_background(lambda started: run(lambda _where: started()))
        return Done(f"service {name} runs as process {pid}")
    cause = run(lambda where: note(where) if verbosity else None)
    return Done(f"service {name} left: {cause}")
