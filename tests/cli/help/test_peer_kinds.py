"""The table of DDS applications, as the command shows it and as the page has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from qsctl.cli.help._peer_kinds import PEER_KINDS
from tests.cli.simulation.small_runs import qsctl

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "qsctl" / "docs" / "any-dds-application.md"


def test_doctor_shows_what_each_kind_of_application_can_do_and_must_know() -> None:
    shown = qsctl("doctor", "--peer", "-o", "json")
    assert shown.exit_code == 0
    kinds = {each["application"]: each for each in json.loads(shown.stdout)}
    assert len(kinds) == len(PEER_KINDS)
    unchanged = kinds["RTI Connext DDS, unchanged clients of RTI Queuing Service"]
    assert "AppAck" in unchanged["cannot"]
    assert unchanged["seen"].startswith("not run here"), "the evidence is documents, and it says so"
    assert "qsctl_queue.idl" in kinds["Cyclone DDS in C"]["must_know"]


def test_programs_that_rows_name_are_there() -> None:
    for kind in PEER_KINDS:
        for path in re.findall(r"(?:fixtures|tests|schemas)/[\w./]+", f"{kind.seen} {kind.must_know}"):
            assert (ROOT / path).exists(), path


def test_page_has_the_same_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for kind in PEER_KINDS:
        row = f"| {kind.application} | {kind.can} | {kind.must_know} | {kind.cannot} | {kind.seen} |".replace("  ", " ")
        assert row.replace("<types>", "`<types>`") in page, row


def test_doctor_shows_where_the_idl_and_the_programs_are() -> None:
    shown = " ".join(qsctl("doctor", "--peer").stdout.split())
    found = re.search(r"The IDL is (\S+), the programs are in (\S+)\.", shown)
    assert found is not None, shown
    assert Path(found[1]).is_file()
    assert (Path(found[2]) / "README.md").is_file()
