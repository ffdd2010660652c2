"""A site as a scenario: what is known is in it, what is not is marked, and its depths are those of the site."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from lxml import etree

from qsctl.instant import SECOND_NS
from qsctl.netconfig.load import KnownFigure, SiteLoad
from qsctl.netconfig.read import parse_netconfig
from qsctl.sim.captured.scenario import ValueOrigin
from qsctl.sim.replication import simulate_counters
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import LognormalSize, MmppArrivals, PoissonArrivals, Scenario
from qsctl.sim.scenario.xml import read_scenario
from qsctl.sim.site._weights import fitted_weights
from qsctl.sim.site.described import described
from qsctl.sim.site.flows import site_flows
from qsctl.sim.site.marks import marked_text
from qsctl.sim.site.scenario import ImportedSite, site_scenario
from tests.campaigns import trials
from tests.netconfig.made_site import MadeSite, made_site, netconfig_text, plant_faults
from tests.netconfig.site_load import load_of, procedures_of

SMALL = """process p {}
process q {}
protocol in { { PROCESSNAME p } { DATAXLATE {
  { { TRXID A } { ROUTE_DETAILS { { { TYPE raw } { DEST {x y} } } } } }
  { { TRXID {B.*} } { WILDCARD 1 } { ROUTE_DETAILS { { { TYPE xlate } { XLATE b.xlt } { DEST y } } } } }
  { { TRXID _HCI_static_route_ } { ROUTE_DETAILS { { { TYPE raw } { DEST far } { PROCS {note} } } } } }
} } }
protocol x { { PROCESSNAME p } }
protocol y { { PROCESSNAME q } }
destination far { { SITE other } { THREAD there } }
"""


def imported(site: MadeSite, folder: Path) -> ImportedSite:
    config = parse_netconfig(netconfig_text(site).encode(), "NetConfig").config
    return site_scenario(config, load_of(site, folder), procedures_of(site), name="made")


def small(load: SiteLoad | None = None) -> ImportedSite:
    return site_scenario(parse_netconfig(SMALL.encode(), "NetConfig").config, load)


def read_back(made: ImportedSite, folder: Path) -> Scenario:
    path = folder / "site.xml"
    path.write_text(marked_text(made.scenario, made.notes))
    return read_scenario(path)


def test_a_static_route_applies_to_all_messages_and_wildcards_have_an_id_of_their_own() -> None:
    made = small()
    check_rules(made.scenario)
    flows = {(each.transaction, each.destination) for each in site_flows(made.scenario.engine or pytest.fail())}
    assert flows == {("A", "x"), ("A", "y"), ("A", "far"), ("B", "y"), ("B", "far")}


def test_every_value_that_is_not_known_has_a_comment_in_front_of_it(tmp_path: Path) -> None:
    made = small()
    root = etree.fromstring(marked_text(made.scenario, made.notes).encode())
    comments = [str(each.text) for each in root.iter(etree.Comment)]
    for element in root.iter("poisson", "size"):
        before = element.getprevious()
        assert before is not None
        assert before.tag is etree.Comment
        assert "assumed" in str(before.text)
    assert any("weight" in each for each in comments)
    assert read_back(made, tmp_path).engine == made.scenario.engine
    assumed = {each.path for each in made.notes if each.origin is ValueOrigin.ASSUMED}
    assert {"procedure[note]/takes", "procedure[b.xlt]/takes"} < assumed


def test_what_is_known_is_not_marked() -> None:
    load = SiteLoad()
    thread = load.of("in")
    thread.arrived_per_s = KnownFigure(3.0, "counted")
    thread.median_bytes, thread.sigma = KnownFigure(500, "counted"), 0.5
    thread.types = {"A": 300, "BX": 100}
    thread.steps = ((1.0, 3600.0), (5.0, 3600.0))
    for name in ("x", "y", "far"):
        load.of(name).served_per_s = KnownFigure(9.0, "waited")
    made = small(load)
    inbound = (made.scenario.engine or pytest.fail()).processes[0].threads[0].inbound
    assert inbound is not None
    assert inbound.arrivals == MmppArrivals((1.0, 5.0), (3600 * SECOND_NS, 3600 * SECOND_NS), cycle=True)
    assert inbound.size == LognormalSize(500, 0.5, 10_000_000)
    assert [(each.id, each.weight) for each in inbound.transactions] == [("A", 0.75), ("BX", 0.25)]
    left = {each.path for each in made.notes if each.origin is ValueOrigin.ASSUMED}
    assert left == {
        "engine/process[p]/thread[in]/inbound/logging", "procedure[note]/takes", "procedure[b.xlt]/takes",
    }  # fmt: skip


def test_weights_are_fitted_to_what_the_destinations_sent() -> None:
    classes = {"s": {"A": {"x": 1.0, "y": 1.0}, "B": {"y": 1.0}, "C": {"z": 2.0}}}
    found = fitted_weights(classes, {"s": 10.0}, {"x": 2.0, "y": 7.0, "z": 6.0})["s"]
    assert found == pytest.approx({"A": 0.2, "B": 0.5, "C": 0.3}, abs=0.01)
    assert fitted_weights(classes, {}, {"x": 2.0})["s"] == pytest.approx(dict.fromkeys("ABC", 1 / 3))


def test_rates_and_receivers_of_a_made_site_are_found_again(tmp_path: Path) -> None:
    site = made_site(60)
    made = imported(site, tmp_path / "saved")
    assert made.left_out == ()
    engine = read_back(made, tmp_path).engine
    assert engine is not None
    sent: dict[str, float] = {}
    for flow in site_flows(engine):
        sent[flow.destination] = sent.get(flow.destination, 0.0) + flow.per_s
    truth = site.sent()
    errors = [abs(sent[name] / truth[name] - 1) for name in truth]
    assert sum(errors) / len(errors) < 0.05
    for process in engine.processes:
        for thread in process.threads:
            if thread.outbound is not None:
                assert isinstance(thread.outbound.service, PoissonArrivals)
                known = site.thread(thread.name).service
                assert thread.outbound.service.rate_per_second == pytest.approx(known, rel=0.15)


@pytest.mark.slow
def test_a_site_with_faults_is_imported_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    site = made_site(60)
    plant_faults(site)
    made = imported(site, tmp_path / "saved")
    check_rules(read_back(made, tmp_path))
    text = "\n".join(made.left_out)
    for part in ("the second thread out_004", "p_gone is not in the file", "which does not exist", "QRY_A19"):
        assert part in text
    assert simulate_counters(dataclasses.replace(made.scenario, horizon_ns=600 * SECOND_NS)).num_rows > 20


@pytest.mark.campaign
@pytest.mark.statistics
def test_the_depths_of_a_simulated_site_are_those_it_was_made_with(tmp_path: Path) -> None:
    """`QSCTL_TEST_SITE_THREADS=300` simulates a day of a site of 300 threads: all depths together within a sixth."""
    threads = trials("QSCTL_TEST_SITE_THREADS", 15, 300)
    is_whole = threads >= 100
    site = made_site(threads, per_s=0.5)
    hours, warm_up_hours = (24, 6) if is_whole else (1, 0)
    scenario = dataclasses.replace(
        imported(site, tmp_path).scenario,
        warm_up_ns=warm_up_hours * 3600 * SECOND_NS,
        horizon_ns=(hours + warm_up_hours) * 3600 * SECOND_NS,
    )
    rows = simulate_counters(scenario).to_pylist()
    seconds = hours * 3600.0
    depths = {
        row["client"]: row["wait_sum_ns"] / SECOND_NS / seconds for row in rows if row["queue"] == "outbound-post-TPS"
    }
    truth = site.depths()
    assert sum(depths.get(name, 0.0) for name in truth) == pytest.approx(
        sum(truth.values()), rel=1 / 6 if is_whole else 0.5
    )


def test_a_scenario_is_described_with_its_lines(tmp_path: Path) -> None:
    made = small()
    scenario = read_back(made, tmp_path)
    config, load, table = described(scenario, "site.xml")
    lines = (tmp_path / "site.xml").read_text().splitlines()
    assert [each.name for each in config.threads] == ["in", "x", "y", "far"]
    assert all(f'<thread name="{each.name}">' in lines[each.line - 1] for each in config.threads)
    assert load.threads["in"].arrived_per_s is not None
    assert table.row("b.xlt") is not None


def test_a_trace_of_an_inbound_thread_is_relative_to_its_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "seen.csv").write_text("time_ns,size_bytes\n0,10\n5000000,20\n")
    path = tmp_path / "there" / "traced.xml"
    path.write_text(
        """<scenario name="traced" model="integration" horizon="1s"><engine><process name="p">
        <thread name="a"><inbound><trace file="seen.csv"/><route><detail to="b"/></route></inbound></thread>
        <thread name="b"><outbound><poisson rate="9/s"/></outbound></thread></process></engine></scenario>"""
    )
    monkeypatch.chdir(tmp_path)
    rows = simulate_counters(read_scenario(path)).to_pylist()
    assert sum(row["arrived_messages"] for row in rows if row["queue"] == "pre-translation") == 2
