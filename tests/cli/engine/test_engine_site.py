"""`qsctl engine import`, `export`, `lint`, `balance`: a site by its NetConfig, from files that are right and wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from qsctl.errors import ExitStatus
from qsctl.sim.scenario.scenario import PoissonArrivals
from qsctl.sim.scenario.xml import read_scenario
from tests.commands import command_line
from tests.netconfig.made_site import (
    durations_text,
    made_site,
    netconfig_text,
    plant_faults,
    statistics_texts,
    write_archive,
)

LISTING = """Created  Message Id     s e d Prio  State Length Source          Dest
-------- -------------- - - - ---- ------ ------ --------------- ---------------
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), list(arguments))


def document(*arguments: str) -> Any:
    done = run(*arguments, "-o", "json")
    assert done.exit_code in {ExitStatus.DONE, ExitStatus.NO}, done.output
    return json.loads(done.stdout)


@pytest.fixture
def lakeside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a NetConfig, four statistics dumps, an archive, and durations."""
    site = made_site(30)
    folder = tmp_path / "lakeside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("NetConfig").write_text(netconfig_text(site))
    for number, text in enumerate(statistics_texts(site)):
        Path(f"stats{number}.txt").write_text(text)
    Path("durations.csv").write_text(durations_text(site))
    write_archive(site, Path("saved"), 100)
    return folder


@pytest.mark.slow
def test_a_site_is_imported_linted_exported_and_balanced(lakeside: Path) -> None:
    statistics = [word for number in range(4) for word in ("--statistics", f"stats{number}.txt")]
    done = run("engine", "import", "NetConfig", *statistics, "--archive", "saved", "--durations", "durations.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("lakeside.xml: ")
    scenario = read_scenario(Path("lakeside.xml"))
    assert (scenario.name, scenario.horizon_ns) == ("lakeside", 86_400 * 10**9)
    assert run("engine", "lint", "NetConfig").stdout == "NetConfig: nothing found.\n"
    flows = document("engine", "export", "lakeside.xml", "--graph", "routes.svg")
    assert {each["source"] for each in flows} == {f"in_{at:03d}" for at in range(6)}
    assert Path("routes.svg").read_text().count("in_000") >= 1
    balanced = document("engine", "balance", "lakeside.xml", "--no-check", "--max-moves", "2")
    assert len(balanced["moves"]) <= 2
    assert {each["process"] for each in balanced["processes"]} == {"p00", "p01", "p02"}


def test_what_is_there_is_not_overwritten_unless_it_is_wanted(lakeside: Path) -> None:
    Path("lakeside.xml").write_text("mine")
    done = run("engine", "import", "NetConfig")
    assert (done.exit_code, "--force" in done.stderr) == (ExitStatus.USAGE, True)
    assert Path("lakeside.xml").read_text() == "mine"
    made = document("engine", "import", "NetConfig", "--force", "--name", "other", "--out", "lakeside.xml")
    assert {each["origin"] for each in made["values"]} == {"assumed"}
    assert "assumed: rate 0.1/s" in Path("lakeside.xml").read_text()


def test_two_listings_give_the_rates_of_what_was_behind_all_the_time(lakeside: Path) -> None:
    def listing(ids: range, clock: str) -> str:
        rows = [f"{clock} [0.0.{number}] E D N 5120     11    700 in_000          out_000\n" for number in ids]
        return LISTING + "".join(rows)

    Path("before.txt").write_text(listing(range(100), "10:00:00"))
    Path("after.txt").write_text(listing(range(60, 130), "10:10:00"))
    both = ("--listing", "before.txt", "--listing", "after.txt")
    assert run("engine", "import", "NetConfig", *both).exit_code == 0
    engine = read_scenario(Path("lakeside.xml")).engine
    assert engine is not None
    threads = {thread.name: thread for process in engine.processes for thread in process.threads}
    served, sender = threads["out_000"].outbound, threads["in_000"].inbound
    assert served is not None
    assert sender is not None
    assert served.service == PoissonArrivals(0.1)
    assert sender.arrivals == PoissonArrivals(0.05)
    done = run("engine", "import", "NetConfig", "--force", *both, "--interval", "20min")
    assert done.exit_code == 0
    assert 'rate="0.05/s"' in Path("lakeside.xml").read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("import", "nowhere/NetConfig"), ExitStatus.NOT_FOUND, "no such file"),
        (("import", "NetConfig", "--listing", "stats0.txt"), ExitStatus.USAGE, "given 1 times"),
        (("import", "NetConfig", "--statistics", "durations.csv"), ExitStatus.NO, "no statistics of threads"),
        (("import", "NetConfig", "--durations", "stats0.txt"), ExitStatus.NO, "no column name"),
        (("import", "NetConfig", "--archive", "."), ExitStatus.DONE, ""),
        (("import", "NetConfig", "--archive", "nowhere"), ExitStatus.NOT_FOUND, "no saved file"),
        (("import", "NetConfig", "--interval", "-1s"), ExitStatus.USAGE, "--interval"),
        (("import", "NetConfig", "--horizon", "0s"), ExitStatus.USAGE, "not a finite duration"),
        (("import", "NetConfig", "--encoding", "klingon"), ExitStatus.USAGE, "no encoding"),
        (("import", "durations.csv"), ExitStatus.NO, "this is not understood"),
        (("lint", "burst"), ExitStatus.USAGE, "not integration"),
        (("lint", "clinic", "--archive", "saved"), ExitStatus.USAGE, "states its load"),
        (("lint", "nowhere/site.xml"), ExitStatus.NOT_FOUND, "no such file"),
        (("export", "clinic", "--graph", "routes.png"), ExitStatus.USAGE, ".svg"),
        (("export", "clinic", "--set", "thread[x]/process=storage"), ExitStatus.USAGE, "no thread 'x'"),
        (("balance", "clinic", "--fixed", "x"), ExitStatus.USAGE, "no thread 'x'"),
    ],
)
def test_what_is_wrong_is_one_error_with_its_status(
    lakeside: Path, arguments: tuple[str, ...], status: ExitStatus, words: str
) -> None:
    done = run("engine", *arguments)
    assert done.exit_code == status, done.output
    assert words in done.stderr
    assert "Traceback" not in done.output


def test_tables_of_a_netconfig_are_chosen_by_names(lakeside: Path) -> None:
    threads = document("engine", "export", "NetConfig", "--table", "threads", "--name", "in_00?")
    assert [each["thread"] for each in threads] == [f"in_{at:03d}" for at in range(6)]
    assert {each["port"] for each in threads} == {str(20_000 + at) for at in range(6)}
    uses = document("engine", "export", "NetConfig", "--table", "uses", "--name", "map_*", "--source", "in_001")
    assert uses
    assert {(each["place"], each["thread"]) for each in uses} == {("translation", "in_001")}
    checks = document("engine", "export", "NetConfig", "--table", "uses", "--name", "check_hl7")
    assert {each["place"] for each in checks} == {"IN_DATA"}
    fed = document("engine", "export", "NetConfig", "--destination", "out_000")
    assert {each["destination"] for each in fed} == {"out_000"}
    refused = run("engine", "export", "clinic", "--table", "threads")
    assert (refused.exit_code, "needs a NetConfig" in refused.stderr) == (ExitStatus.USAGE, True)


def test_findings_are_printed_with_file_line_thread_and_what_to_do(lakeside: Path) -> None:
    site = made_site(60)
    plant_faults(site)
    Path("NetConfig").write_text(netconfig_text(site))
    done = run("engine", "lint", "NetConfig")
    assert done.exit_code == ExitStatus.NO
    assert "NetConfig:" in done.stdout
    rows = document("engine", "lint", "NetConfig")
    cycle = next(each for each in rows if each["rule"] == "cycle")
    assert cycle["remedy"]
    lines = Path("NetConfig").read_text().splitlines()
    unknown = next(each for each in rows if each["rule"] == "unknown-destination")
    assert "DEST {out_000x}" in lines[unknown["line"] - 1] or "DEST {out_001x}" in lines[unknown["line"] - 1]
    clinic = run("engine", "lint", "clinic")
    assert (clinic.exit_code, "A40" in clinic.stdout) == (ExitStatus.NO, True)
