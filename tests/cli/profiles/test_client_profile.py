"""`qsctl client-profile …` and `--client-profile`: exit statuses first, then what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree
from typer.testing import CliRunner, Result

from qsctl.profiles.formats.kinds import Format
from qsctl.shipped import shipped
from qsctl.sim.scenario.scenario import Queue
from qsctl.sim.scenario.xml import read_scenario, schema_problems
from tests.commands import command_line

FIXTURES = shipped("fixtures/profiles")
WEB, BROKER, LISTING = (str(FIXTURES / name) for name in ("web.json", "broker.cfg", "listing.txt"))


def run(*words: str, status: int = 0) -> Result:
    done = CliRunner().invoke(command_line(), list(words))
    assert done.exit_code == status, done.output
    return done


def profile(*words: str, status: int = 0) -> Result:
    return run("client-profile", *words, status=status)


def shown(*words: str) -> str:
    return profile("show", *words, "-o", "csv").stdout


def test_the_options_name_every_format() -> None:
    for words in (("export", WEB, "--to", "nope"), ("show", WEB, "--from", "nope")):
        refused = profile(*words, status=2).output
        assert [each.value for each in Format if f"'{each}'" not in refused] == []


def test_show_names_every_setting_with_range_and_source() -> None:
    document = json.loads(profile("show", WEB, "-o", "json").stdout)
    assert (document["name"], document["message_vpn"], document["format"]) == ("web", "trading", "semp-v2")
    rows = {row["semp_v2"]: row for row in document["settings"]}
    assert rows["queueDirect2MaxDepth"]["value"] == 100
    assert rows["queueDirect2MaxDepth"]["stated"]
    assert not rows["queueDirect2MinMsgBurst"]["stated"]
    assert rows["maxSubscriptionCount"]["value"] is None
    assert all(row["allowed"] and row["source"] for row in rows.values())
    changed = profile("show", WEB, "--changed").stdout
    assert "d_1_max_depth_work_units" in changed
    assert "elidingDelay" not in changed
    assert '<queue name="D-1" max-depth="100"' in profile("show", WEB, "-o", "xml").stdout


def test_a_file_of_several_profiles_asks_which() -> None:
    done = profile("show", BROKER, status=2)
    assert "--name one of: guaranteed of message VPN trading, web of message VPN trading." in done.stderr
    assert (
        profile("show", f"{BROKER}#web", "-o", "csv").stdout
        == profile("show", BROKER, "--name", "web", "-o", "csv").stdout
    )
    assert "has no profile wep" in profile("show", f"{BROKER}#wep", status=4).stderr


def test_a_file_with_a_number_sign_in_its_name_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a#web"
    path.write_bytes(Path(BROKER).read_bytes())
    assert (
        profile("show", f"{path}#web", "-o", "csv").stdout
        == profile("show", str(path), "--name", "web", "-o", "csv").stdout
    )


def test_two_profiles_of_one_file_are_compared() -> None:
    told = profile("diff", f"{BROKER}#web", f"{BROKER}#guaranteed", "-o", "json", status=1)
    found = {each["field"]: (each["first"], each["second"]) for each in json.loads(told.stdout)["differences"]}
    assert found["d_1_max_depth_work_units"] == (50, 20_000)
    assert profile("diff", f"{BROKER}#web", f"{BROKER}#web").stdout


def test_export_against_a_file_of_several_profiles_takes_the_one_of_the_name(tmp_path: Path) -> None:
    changed = tmp_path / "new.json"
    profile("set", BROKER, "queueDirect1MaxDepth=60", "--name", "web", "--out", str(tmp_path / "new.cfg"))
    profile("export", f"{tmp_path / 'new.cfg'}#web", "--to", "semp-v2", "--out", str(changed))
    words = ("export", str(changed), "--to", "semp-v2", "--against")
    assert json.loads(profile(*words, BROKER).stdout)["queueDirect1MaxDepth"] == 60
    assert len(json.loads(profile(*words, BROKER).stdout)) == 3, "the names, and what differs"
    other = json.loads(profile(*words, f"{BROKER}#guaranteed").stdout)
    assert other["queueGuaranteed1MinMsgBurst"] == 255
    profile("show", BROKER, "--name", "web", "--message-vpn", "trading")
    assert "Did you mean guaranteed?" in profile("show", BROKER, "--name", "guarantied", status=4).stderr


def test_set_prints_the_file_in_its_own_format_and_changes_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "new.json"
    profile("set", WEB, "queueDirect1MaxDepth=200", "egress_flows_threshold=900/700", "--out", str(out))
    before, after = json.loads(Path(WEB).read_text(encoding="utf-8")), json.loads(out.read_text(encoding="utf-8"))
    assert after["eventEgressFlowCountThreshold"] == {"setValue": 900, "clearValue": 700}
    assert {name for name in before if str(after[name]) != str(before[name])} == {"queueDirect1MaxDepth"}
    assert set(after) - set(before) == {"eventEgressFlowCountThreshold"}
    rows = json.loads(profile("diff", WEB, str(out), "-o", "json", status=1).stdout)["differences"]
    assert [row["field"] for row in rows] == ["d_1_max_depth_work_units", "egress_flows_threshold"]
    profile("set", WEB, "elidingDelay=5", "--out", str(out), status=2)
    profile("set", WEB, "elidingDelay=5", "--out", str(out), "--force")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("tcpInitialCongestionWindow=4",), 2, "Did you mean tcpCongestionWindowSize?"),
        (("queueDirect1MaxDepth=1",), 1, "a whole number from 2 to 262,144 work units"),
        (("queueDirect1MaxDepth",), 2, "is not SETTING=VALUE"),
        (("egress_flows_threshold=101%/5%",), 1, "set and clear in percent"),
        (("copy_from_queue_template=x",), 0, ""),
    ],
)
def test_set_explains_what_it_refuses(words: tuple[str, ...], status: int, told: str) -> None:
    assert told in profile("set", WEB, *words, status=status).stderr


def test_to_set_what_the_format_has_no_place_for_is_refused() -> None:
    assert (
        "format listing has no place for"
        in profile("set", LISTING, "maxTransactionCount=5", "--name", "web", status=1).stderr
    )


def test_reset_gives_back_the_defaults(tmp_path: Path) -> None:
    out = tmp_path / "plain.json"
    profile("reset", WEB, "--all", "--out", str(out))
    assert "Every setting has its default." in profile("show", str(out), "--changed").stdout
    one = json.loads(profile("reset", WEB, "queueDirect1MaxDepth").stdout)
    assert (one["queueDirect1MaxDepth"], one["queueDirect2MaxDepth"]) == (20_000, 100)
    profile("reset", WEB, status=2)


@pytest.mark.parametrize("to", list(Format))
def test_export_writes_what_diff_finds_the_same(tmp_path: Path, to: Format) -> None:
    out = tmp_path / "exported"
    done = profile("export", WEB, "--to", to, "--out", str(out), "-o", "json")
    lost = json.loads(done.stdout)["lost"]
    found = json.loads(profile("diff", WEB, str(out), "-o", "json").stdout)
    assert found["same"]
    assert sorted(found["not_compared"]) == sorted(lost)
    assert all(name in done.stderr for name in lost)


def test_diff_does_not_compare_what_a_file_does_not_hold_or_know(tmp_path: Path) -> None:
    (tmp_path / "a.tf").write_text(
        'resource "solacebroker_msg_vpn_client_profile" "p" {\n  client_profile_name = "web"\n'
        "  queue_direct1_max_depth = 100\n  eliding_delay = var.d\n  eliding_enabled = true\n}\n"
    )
    known = '{"clientProfileName": "web", "queueDirect1MaxDepth": 100, "elidingEnabled": true, "elidingDelay": 7}'
    (tmp_path / "b.json").write_text(known)
    found = json.loads(profile("diff", str(tmp_path / "a.tf"), str(tmp_path / "b.json"), "-o", "json", status=3).stdout)
    assert (found["same"], found["not_compared"]) == (True, ["eliding_delay_ms"])
    (tmp_path / "b.json").write_text(known.replace("100", "200"))
    table = profile("diff", str(tmp_path / "a.tf"), str(tmp_path / "b.json"), status=1).stdout
    assert "d_1_max_depth_work_units" in table
    assert "Not compared, as one of the files does not hold or know it: eliding_delay_ms." in table


def test_a_value_that_is_not_known_is_shown_left_out_and_never_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"clientProfileName": "web",\n "queueDirect1MaxDepth": 1,\n "elidingDelay": 7}')
    done = profile("show", str(path), "--changed", status=3)
    assert "? 1" in done.stdout
    assert "a.json:2: error: queueDirect1MaxDepth has no valid value" in done.stderr
    done = profile("export", str(path), "--to", "cli", "-o", "json", status=3)
    exported = json.loads(done.stdout)
    assert exported["unknown"] == ["d_1_max_depth_work_units"]
    assert exported["text"].count("max-depth 20000") == 4
    assert "values not in the file, left out" in done.stderr
    assert "1 value that cannot be read" in profile("lint", str(path), status=1).stdout
    for words in (("set", str(path), "elidingDelay=9"), ("import", str(path)), ("size", str(path))):
        assert "no valid value" in profile(*words, status=1).stderr


def test_export_against_another_is_the_smallest_change(tmp_path: Path) -> None:
    new = tmp_path / "new.json"
    profile("set", WEB, "queueDirect1MaxDepth=200", "--out", str(new))
    patch = json.loads(profile("export", str(new), "--to", "semp-v2", "--against", WEB).stdout)
    assert patch == {"clientProfileName": "web", "msgVpnName": "trading", "queueDirect1MaxDepth": 200}
    script = profile("export", WEB, "--to", "cli", "--changed").stdout
    assert script.count("max-depth 100") == 3
    assert "min-msg-burst" not in script


def test_import_makes_a_file_that_a_scenario_refers_to(tmp_path: Path) -> None:
    out = tmp_path / "profiles.xml"
    profile("import", BROKER, "--out", str(out))
    assert schema_problems(etree.parse(str(out)).getroot(), "profiles.xml") == []
    scenario = tmp_path / "s.xml"
    scenario.write_text(
        '<scenario name="s" horizon="1s"><port name="p1"/><profile name="web" file="profiles.xml"/>'
        '<group name="g" port="p1" profile="web"/><traffic name="t" to="g"><poisson rate="1/s"/></traffic></scenario>'
    )
    (read,) = read_scenario(scenario).profiles
    assert read.queues[Queue.D_1].max_depth_work_units == 50
    assert (read.eliding.enabled, read.eliding.delay_ns, read.eliding.max_topics) == (True, 250_000_000, 80)
    assert "there are two different profiles web" in profile("import", BROKER, WEB, status=1).stderr


def test_import_takes_one_of_two_profiles_of_a_name(tmp_path: Path) -> None:
    other = str(FIXTURES / "guaranteed.json")
    told = profile("import", BROKER, other, status=1).stderr
    assert "two different profiles guaranteed, of message VPN trading" in told
    assert "FILE#NAME" in told
    chosen = profile("import", f"{BROKER}#web", other, "--out", str(tmp_path / "profiles.xml")).stderr
    assert "web" in chosen + profile("show", f"{tmp_path / 'profiles.xml'}#web").stdout
    profile("show", f"{tmp_path / 'profiles.xml'}#guaranteed")


def test_lint_answers_no_with_the_numbers() -> None:
    done = profile("lint", BROKER, "--name", "guaranteed", "--flows", "10", status=1)
    assert "min-msg-burst 4 < 10 × 255 = 2,550" in done.stdout
    profile("lint", str(FIXTURES / "guaranteed.json"), "--flows", "10")
    assert "queued 1,500 > max-depth 100" in profile("lint", WEB, "--queued", "D-1=1500", status=1).stdout
    assert "Queues are G-1" in profile("lint", WEB, "--queued", "E-1=5", status=2).stderr


def test_size_gives_the_arithmetic_and_how_to_check_it(tmp_path: Path) -> None:
    words = ("size", "--flows", "10", "--window", "255", "--message-size", "20480", "--clients", "3")
    document = json.loads(profile(*words, "-o", "json").stdout)
    lines = {line["quantity"]: line["value"] for line in document["lines"]}
    assert lines["wanted in G-1"] == 25_500
    assert document["memory_bytes"] == 3 * lines["memory of one client"]
    assert (document["is_enough"], document["burst_needed"]) == (False, 2550)
    assert document["levers"]
    scenario = tmp_path / "load.xml"
    assert str(scenario) in profile(*words, "--scenario", str(scenario)).stdout
    assert '<endpoint to="clients" flows="10" library-threshold="0"/>' in scenario.read_text(encoding="utf-8")
    assert "not" in profile("size", "--round-trip", "soon", status=2).stderr


def test_a_wrong_file_has_its_status_and_every_problem(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"clientProfileName": "p",\n "queueDirect1MaxDepth": 1,\n "flowWindowSize": 5}')
    done = profile("show", str(wrong), status=1)
    assert "wrong.json:2: error: queueDirect1MaxDepth has no valid value" in done.stderr
    assert "egressFlowWindowSize" in done.stderr
    profile("show", str(tmp_path / "none.json"), status=4)


def simulated(tmp_path: Path, *words: str, status: int = 0) -> Result:
    out = str(tmp_path / "run")
    return run("simulate", "guaranteed", "--set", "horizon=200ms", "--out", out, *words, status=status)


def test_simulate_takes_a_client_profile_in_place_of_a_scenario_s(tmp_path: Path) -> None:
    done = simulated(tmp_path, "--client-profile", f"covered={BROKER}#guaranteed", "--level", "counters")
    assert "in place of profile 'covered': queue[G-1]/min-msg-burst=4" in done.stderr
    text = (tmp_path / "run" / "scenario.xml").read_text(encoding="utf-8")
    covered = text[text.index('<profile name="covered"') : text.index('<profile name="throttled"')]
    assert 'min-msg-burst="4"' in covered
    info = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert "--set 'profile[covered]/queue[G-1]/min-msg-burst=4'" in json.dumps(info)


@pytest.mark.parametrize(
    ("option", "status", "told"),
    [
        (WEB, 2, "Write --client-profile PROFILE=FILE with one of: covered, throttled."),
        (f"covered={BROKER}", 2, "Behind the file with # one of"),
        (f"covered={WEB}.none", 4, "there is no such file"),
    ],
)
def test_a_client_profile_that_is_not_clear_is_refused(tmp_path: Path, option: str, status: int, told: str) -> None:
    assert told in simulated(tmp_path, "--client-profile", option, status=status).stderr
    assert not (tmp_path / "run").exists()


def test_a_scenario_of_another_model_knows_no_client_profile(tmp_path: Path) -> None:
    done = run("simulate", "trace-tibco", "--client-profile", WEB, "--out", str(tmp_path / "r"), status=1)
    assert "a client profile means nothing there" in done.stderr


def test_compare_wants_two_profiles_or_two_folders() -> None:
    assert "two client profiles" in run("compare", "guaranteed", "--client-profile", WEB, status=2).stderr
    assert "B is missing" in run("compare", "guaranteed", status=2).stderr
