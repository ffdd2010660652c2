"""How a service starts, is told apart, and is refused [QS 4]: the command line of `qsctl serve`."""

from __future__ import annotations

import socket
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from qsctl.cli._rti_options import RTI_OPTIONS, in_our_spelling
from qsctl.core.events import BounceReason, QueueFilled, SampleBounced, SampleReceived
from qsctl.errors import UsageError
from qsctl.identity import NIL_IDENTITY, Guid, SampleIdentity
from qsctl.service.process.background import systemd_unit
from qsctl.service.process.heap import heap_snapshots
from qsctl.service.process.logger import ServiceLog, Verbosity, dds_verbosity
from tests.patience import eventually
from tests.processes import run

CONFIGURATION = """
<dds><queuing_service name="A">{more}
  <domain_participant name="P"><domain_id>{domain}</domain_id>{participant}
    <shared_subscriber name="S"><session_settings><session name="s"/></session_settings>
      <shared_reader_queue name="Q" session="s"><topic_name>T</topic_name><type_name>DDS::Octets</type_name>{queue}
      </shared_reader_queue></shared_subscriber>
  </domain_participant></queuing_service></dds>
"""

UNEQUAL_INSTANCES = """<administration><domain_id>151</domain_id></administration>
<service_qos><configuration_replication><replication_settings><queue_instances>5</queue_instances></replication_settings>
</configuration_replication><shared_reader_queue_replication/></service_qos>"""


def serve(tmp_path: Path, *arguments: str, domain: int = 151, **parts: str) -> subprocess.CompletedProcess[str]:
    parts = {"more": "", "participant": "", "queue": ""} | parts
    file = tmp_path / "a.xml"
    file.write_text(CONFIGURATION.format(domain=domain, **parts), encoding="utf-8")
    return run([sys.executable, "-m", "qsctl", "serve", *arguments], cwd=tmp_path)


def test_every_option_of_the_original_has_a_spelling_of_ours() -> None:
    arguments = ["serve", "-cfgFile", "a.xml", "-cfgName", "A", "-verbosity", "3", "-var", "X=-daemon", "-daemon"]
    assert in_our_spelling(arguments) == [
        "serve", "--cfg-file", "a.xml", "--config-name", "A", "--verbosity", "3", "--var", "X=-daemon", "--daemon",
    ]  # fmt: skip
    assert in_our_spelling(["get", "-var"]) == ["get", "-var"]
    assert in_our_spelling(["serve", "-verbosity=2", "--", "-daemon"]) == ["serve", "--verbosity=2", "--", "-daemon"]


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (["serve", "-bogus", "a.xml"], "there is no option -bogus", ""),
        (["serve", "a.xml", "-cfgNme=A"], "there is no option -cfgNme", "Did you mean -cfgName?"),
        (["serve", "-daemon", "-verbose", "3"], "there is no option -verbose", "Did you mean -verbosity?"),
    ],
)
def test_an_unknown_option_like_the_originals_is_refused_by_its_whole_name(
    arguments: list[str], message: str, remedy: str
) -> None:
    with pytest.raises(UsageError) as refused:
        in_our_spelling(arguments)
    assert refused.value.message == message
    assert refused.value.remedy.startswith(remedy)


def test_what_is_a_value_or_ours_is_no_unknown_option() -> None:
    for words in (
        ["--cfg-file", "-odd.xml"],
        ["-appName", "-bogus"],
        ["-ojson"],
        ["-o", "json"],
        ["-h"],
        ["--", "-bogus"],
    ):
        in_our_spelling(["serve", *words])
    assert len(RTI_OPTIONS) == 16
    from typer.main import get_command

    from tests.commands import command_line

    command = get_command(command_line()).commands["serve"]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert set(RTI_OPTIONS.values()) <= known


@pytest.mark.slow(beyond=4)
@pytest.mark.parametrize(
    ("arguments", "parts", "status", "message"),
    [
        ((), {}, 2, "no configuration file is given"),
        (("a.xml", "-cfgName", "B"), {}, 1, "there is no such <queuing_service>"),
        (("a.xml", "-cfgRemote"), {}, 2, "-cfgRemote needs -remoteAdministrationDomainId"),
        (("a.xml", "-persistentStoragePath", "/nowhere/at/all"), {}, 1, "/nowhere/at/all"),
        (("a.xml", "--interface", "nosuch0"), {}, 7, "DDS does not start in domain 151 on interface 'nosuch0'"),
        (("a.xml", "-domainIdBase", "200"), {}, 1, "151 + 200 = 351"),
        (("a.xml", "--record", "."), {}, 1, "is not an empty folder"),
        (("a.xml", "--record", "r", "--record-max", "5"), {}, 2, "too small"),
        (("a.xml", "--record", "r", "--record-sample", "0%"), {}, 2, "'0%' is not a fraction"),
        (
            ("a.xml",),
            {
                "participant": "<participant_qos><property><value><element><name>dds.sec.auth.identity_ca</name>"
                "<value>file:ca.pem</value></element></value></property></participant_qos>"
            },
            7,
            "no DDS Security",
        ),
        (
            ("a.xml",),
            {"more": UNEQUAL_INSTANCES},
            7,
            "queue Q has queue_instances 2, and the configuration 5",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words_with_its_status(
    tmp_path: Path, arguments: tuple[str, ...], parts: dict[str, str], status: int, message: str
) -> None:
    ran = serve(tmp_path, *arguments, **parts)
    assert ran.returncode == status, ran.stderr
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_user_s_own_file_is_loaded_where_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "USER_QUEUING_SERVICE.xml").write_text(
        CONFIGURATION.format(domain=151, more=UNEQUAL_INSTANCES, participant="", queue=""), encoding="utf-8"
    )
    done = serve(tmp_path)
    assert done.returncode == 7
    assert "queue_instances" in done.stderr, "it was read, and its own fault is told"


def test_a_daemon_that_cannot_start_reports_the_reason_to_its_parent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = serve(tmp_path, "a.xml", "--daemon", "--metrics-port", port, domain=152)
    assert ran.returncode == 7
    assert f"127.0.0.1:{port}" in ran.stderr


def test_the_version_is_printed_for_both_spellings(tmp_path: Path) -> None:
    assert serve(tmp_path, "-version").stdout == serve(tmp_path, "--version").stdout != ""


def test_a_unit_runs_the_same_command_line_in_the_foreground() -> None:
    unit = systemd_unit(["serve", "a b.xml", "--daemon", "--print-unit"])
    assert "-m qsctl serve 'a b.xml'" in unit
    assert "--daemon" not in unit
    assert "KillSignal=SIGTERM" in unit


@pytest.mark.parametrize(
    ("verbosity", "words"),
    [
        (Verbosity.SILENT, []),
        (Verbosity.EXCEPTIONS, ["failed"]),
        (Verbosity.WARNINGS, ["failed", "queue_full"]),
        (Verbosity.INFORMATION, ["failed", "queue_full", "refused"]),
        (Verbosity.DDS_WARNINGS, ["failed", "queue_full", "refused"]),
        (Verbosity.TRACING, ["failed", "queue_full", "refused", "SampleReceived"]),
    ],
)
def test_each_verbosity_shows_its_lines_and_those_below(verbosity: Verbosity, words: list[str]) -> None:
    stream = StringIO()
    log = ServiceLog("A", verbosity, stream=stream)
    log.error("failed")
    log.events(
        [
            QueueFilled(1, "Q"),
            SampleBounced(1, "Q", NIL_IDENTITY, BounceReason.QUEUE_FULL),
            SampleReceived(1, "Q", NIL_IDENTITY, 5),
        ]
    )
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(words)
    assert all(f"event='{word}'" in line for word, line in zip(words, lines, strict=True))


def test_a_trace_has_a_line_for_each_sample_of_a_range() -> None:
    stream = StringIO()
    first, other = SampleIdentity(Guid(b"w" * 16), 7), SampleIdentity(Guid(b"w" * 16), 9)
    ServiceLog("A", Verbosity.TRACING, stream=stream).events([SampleReceived(1, "Q", first, (5, 6), count=2, step=2)])
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert all(f"sample='{each}'" in line for each, line in zip((first, other), lines, strict=True))


def test_dds_speaks_from_verbosity_four_on() -> None:
    assert [dds_verbosity(each) for each in Verbosity] == [
        "none", "severe", "severe", "severe", "warning", "warning", "config",
    ]  # fmt: skip


def test_heap_snapshots_have_the_documented_names(tmp_path: Path) -> None:
    import os

    with heap_snapshots("A", 1, tmp_path):
        expected = tmp_path / f"RTI_A{os.getpid()}0.log"
        assert eventually(lambda: expected.exists() and bool(expected.read_text()))
    assert expected.read_text().startswith("traced bytes: ")
