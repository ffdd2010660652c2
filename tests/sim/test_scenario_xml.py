"""Scenario XML: every problem in one run, the schema and the reader agree, overrides by path, canonical text."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qsctl.declared.problems import InvalidFile
from qsctl.errors import InvalidInput, NotFound, UsageError
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.shipped import shipped
from qsctl.sim.scenario import scenario as s
from qsctl.sim.scenario.forms.elements import SCENARIO
from qsctl.sim.scenario.forms.form import Form
from qsctl.sim.scenario.forms.text import scenario_digest, scenario_text
from qsctl.sim.scenario.overrides.set_values import apply_overrides, paths_of
from qsctl.sim.scenario.rules.scenario import breaches_of, check_rules
from qsctl.sim.scenario.xml import SCHEMA, find_scenario, read_scenario, ready_scenarios
from qsctl.sim.sizing.targets import parse_setting
from qsctl.sim.sweep import parse_axes
from tests.sim.scenario_files import problems_of, written

READY = ready_scenarios()
XS = "{http://www.w3.org/2001/XMLSchema}"

GOOD = """<scenario name="good" horizon="2s">
  <port name="p1" rate="1 Gbit/s"/>
  <profile name="default"><queue name="D-1" max-depth="500"/></profile>
  <group name="web" port="p1" profile="default" count="$(CLIENTS)"><pause start="1s" duration="200ms"/></group>
  <traffic name="a" to="web"><poisson rate="2 k/s"/><size bytes="1 KB"/></traffic>
  <change at="1s" path="profile[default]/queue[D-1]/max-depth" value="100"/>
</scenario>
"""


def schema_accepts(path: Path) -> bool:
    return bool(etree.XMLSchema(etree.parse(str(shipped(SCHEMA)))).validate(etree.parse(str(path))))


def test_a_scenario_is_read_with_variables_from_the_command_line_before_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    read = read_scenario(path, {"CLIENTS": "7"}, {"CLIENTS": "8"})
    assert read.groups[0].count == 7
    assert read_scenario(path, {}, {"CLIENTS": "8"}).groups[0].count == 8
    assert read.profiles[0].queues[s.Queue.D_1] == s.QueueLimits(500, 4)
    assert read.profiles[0].queues[s.Queue.G_1] == s.QueueLimits(20_000, 255)
    assert read.traffic[0] == s.Traffic("a", "web", s.PoissonArrivals(2000.0), s.ConstantSize(1024))


def test_an_undefined_variable_is_named_with_its_line(tmp_path: Path) -> None:
    assert (4, "the variable CLIENTS has no value") in problems_of(tmp_path, GOOD)


def test_every_problem_of_a_file_is_reported_in_one_run_with_its_line(tmp_path: Path) -> None:
    text = """<scenario name="bad" horizon="10" seed="-1" colour="red">
  <port name="p1" rate="fast"/>
  <profile name="default">
    <queue name="E-1"/>
    <queue name="D-1" max-depth="1"/>
    <queue name="D-2"/>
    <queue name="D-2"/>
  </profile>
  <group name="web" port="p2" profile="defualt" count="0"/>
  <group name="web" port="p1" profile="default"/>
  <traffic name="a" to="wab"><poisson rate="1/s"/><constant rate="1/s"/></traffic>
  <traffic name="b" to="web"><mmpp/></traffic>
  <trafic name="c" to="web"/>
  <broker/>
  <broker/>
</scenario>
"""
    found = problems_of(tmp_path, text)
    assert {line for line, _ in found} == {1, 2, 4, 5, 7, 9, 10, 11, 12, 13, 15}
    messages = "\n".join(message for _, message in found)
    for part in (
        "horizon is '10'", "seed is '-1'", "unknown attribute 'colour'", "rate is 'fast'", "name is 'E-1'",
        "max-depth is '1'", "a second <queue> for D-2", "count is '0'", "a second <group> named 'web'",
        "a second <constant> in <traffic>", "<mmpp> has no <state>", "did you mean 'traffic'?", "a second <broker>",
    ):  # fmt: skip
        assert part in messages


def test_a_problem_names_file_line_path_value_and_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_scenario(written(tmp_path, GOOD.replace('max-depth="500"', 'max-depth="999999"')), {"CLIENTS": "1"}, {})
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "scenario.xml")
    assert problem.line == 3
    assert problem.path == "scenario[good]/profile[default]/queue[D-1]/@max-depth"
    assert problem.found == "999999"
    assert problem.allowed == "a whole number from 2 to 262,144"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('port="p1"', 'port="p2"', "there is no port 'p2'"),
        ('profile="default"', 'profile="defautl"', "there is no profile 'defautl'; did you mean 'default'?"),
        ('to="web"', 'to="elsewhere"', "there is no group 'elsewhere'"),
        ('horizon="2s"', 'horizon="2s" warm-up="3s"', "warm-up is 3s: nothing is left to observe"),
        ("<size bytes=\"1 KB\"/>", "<uniform-size minimum='9' maximum='2'/>", "the minimum is above the maximum"),
        ("<poisson rate=\"2 k/s\"/>", "<trace file='none.csv'/>", "there is no trace file"),
        ("<pause ", "<uniform-service-time minimum='9ms' maximum='2ms'/><pause ", "the minimum is above the maximum"),
        ("<pause ", "<pareto-service-time minimum='9ms' shape='0'/><pause ", "the shape is 0"),
        ('port="p1"', 'port="p1" reading-delay="1ms"', "it is acknowledgment-latency now"),
        ('at="1s"', 'at="3s"', "the change comes after the end"),
        ("max-depth\" value", "colour\" value", "cannot change during a run"),
        ('duration="200ms"', 'duration="200ms" every="100ms"', "it would begin again before it has ended"),
        ('horizon="2s"', 'horizon="2s" model="shared_reader_queue"', "there is no <workload>"),
        ('horizon="2s"', 'horizon="2s" model="tibco"', "name is 'D-1'"),
        ('<traffic name="a" to="web">', '<traffic name="a" to="web" cos="4">', "cos is '4'"),
        ('<traffic name="a" to="web">', '<traffic name="a" to="web" cos="1" queue="D-1">', "is given beside"),
        ("</scenario>", "<!-- fine --></scenario>", ""),
        ("</scenario>", "<broker ingress-buffer='1 MB'/></scenario>", "ingress-buffer without ingress-rate"),
        ('value="100"', 'value="300000"', "not a whole number from 2 to 262,144"),
        ('value="100"', 'value="1"', "not a whole number from 2 to 262,144"),
        ('queue name="D-1"', 'queue name="egress"', "name is 'egress'"),
        ('profile name="default"', 'profile name="web-clients"', "name is 'web-clients'"),
        ("2 k/s", "0/s", "the rate is 0"),
        ('duration="200ms"', 'duration="1ns" every="2ns"', "more than a million times"),
        ('<profile name="default">', '<profile name="default" queueDirect1MaxDepth="5">', '<queue name="D-1"'),
        ('<profile name="default">', '<profile name="default"><tcpMaxWindowSize/>', '<tcp maximum-window="… KB"/>'),
        ('<size bytes="1 KB"/>', '<exponential-size mean="500"/>', ""),
        ('<size bytes="1 KB"/>', '<pareto-size minimum="100" shape="0"/>', "the shape is 0"),
        ("</scenario>", "stray</scenario>", "text is found where only elements are allowed"),
    ],
)  # fmt: skip
def test_rules_across_elements(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = GOOD.replace("$(CLIENTS)", "1").replace(old, new)
    assert text != GOOD
    if message:
        assert message in "\n".join(found for _, found in problems_of(tmp_path, text))
    else:
        read_scenario(written(tmp_path, text), {}, {})


@pytest.mark.parametrize(
    "text", ["", "nonsense", "<scenario", "<other/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><scenario name='x'/>", "\0"]
)
def test_what_is_no_scenario_is_one_clear_error(tmp_path: Path, text: str) -> None:
    assert problems_of(tmp_path, text)


def test_a_folder_and_a_missing_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="directory"):
        read_scenario(tmp_path)
    with pytest.raises(InvalidFile, match="no such file"):
        read_scenario(tmp_path / "none.xml")
    with pytest.raises(NotFound, match="no ready scenario of that name"):
        find_scenario("stedy")


@pytest.mark.parametrize(("attributes", "queue", "eligible"), [
    ('delivery="direct" cos="1"', "D-1", False), ('cos="2"', "D-2", False), ('delivery="direct" cos="3"', "D-3", False),
    ('delivery="guaranteed" cos="1"', "G-1", True), ('delivery="guaranteed" cos="2"', "G-1", True),
    ('delivery="guaranteed" cos="3"', "G-1", False), ("", "D-1", False), ('queue="C-1"', "C-1", False),
])  # fmt: skip
def test_class_of_service_names_the_queue_or_the_discard_eligibility(
    tmp_path: Path, attributes: str, queue: str, eligible: bool
) -> None:
    text = GOOD.replace("$(CLIENTS)", "1").replace('<traffic name="a"', f'<traffic name="a" {attributes}')
    traffic = read_scenario(written(tmp_path, text)).traffic[0]
    assert (str(traffic.queue), traffic.discard_eligible) == (queue, eligible)


def test_a_profile_comes_from_another_file(tmp_path: Path) -> None:
    reference = '<profile name="web" file="p.xml"/><profile name="default">'
    text = GOOD.replace("$(CLIENTS)", "1").replace('<profile name="default">', reference)
    written(tmp_path, '<profiles><profile name="web"><tcp mss="$(MSS)"/></profile></profiles>', "p.xml")
    assert read_scenario(written(tmp_path, text), {"MSS": "1000"}).profiles[0].tcp.mss_bytes == 1000
    assert problems_of(tmp_path, text) == [(1, "the variable MSS has no value"), (1, "mss is '$(MSS)'")]
    written(tmp_path, '<profiles><profile name="wob"/></profiles>', "p.xml")
    assert "p.xml has no profile 'web'" in problems_of(tmp_path, text)[0][1]


@pytest.mark.parametrize("name", READY)
def test_ready_scenarios_are_valid_for_reader_rules_and_schema(name: str) -> None:
    read = read_scenario(READY[name])
    assert read.name == name
    assert read.description
    assert list(breaches_of(read)) == []
    assert schema_accepts(READY[name])


@pytest.mark.parametrize("name", READY)
def test_the_canonical_text_reads_back_to_the_same_scenario(name: str, tmp_path: Path) -> None:
    read = read_scenario(READY[name])
    if read.workload is not None:
        import msgspec

        (tmp_path / "service.json").write_bytes(msgspec.json.encode(read.workload.service))
    path = written(tmp_path, scenario_text(read))
    again = read_scenario(path)
    assert again == read
    assert schema_accepts(path)
    assert scenario_digest(again) == scenario_digest(read)


def test_the_digest_is_of_what_is_simulated_and_not_of_how_it_is_logged() -> None:
    read = read_scenario(READY["burst"])
    same = dataclasses.replace(read, log_level="counters", replications=9, description="other")
    assert scenario_digest(same) == scenario_digest(read)
    assert scenario_digest(dataclasses.replace(read, seed=2)) != scenario_digest(read)


def test_a_trace_counts_by_its_content_wherever_it_lies(tmp_path: Path) -> None:
    read = read_scenario(READY["trace-solace"])
    copy = tmp_path / "copy.csv"
    copy.write_bytes((READY["trace-solace"].parent / "market-open.csv").read_bytes())
    moved = dataclasses.replace(
        read, traffic=(dataclasses.replace(read.traffic[0], arrivals=s.TraceArrivals(str(copy))),)
    )
    assert scenario_digest(moved) == scenario_digest(read)
    copy.write_text(copy.read_text() + "1999999999,1,1\n")
    assert scenario_digest(moved) != scenario_digest(read)


def forms(form: Form = SCENARIO) -> Iterator[Form]:
    yield form
    for child in form.children:
        for inner in child.forms:
            yield from forms(inner)


def test_every_field_of_a_scenario_can_be_written() -> None:
    for form in forms():
        aside = set(form.foreign)
        reached = {each.field.partition(".")[0] for each in (*form.attributes, *form.children)}
        reached |= {each.field for each in form.columns.attributes} if form.columns else set()
        fields = {each.name for each in dataclasses.fields(typing.cast("Any", form.type))}
        assert fields - aside - {"places"} == reached, form.element  # where the file states them is not written


def schema_of(form: Form) -> etree._Element:
    """Return the type of an element; two forms may have elements of one name in different places."""
    tree = etree.parse(str(shipped(SCHEMA))).getroot()
    around = next((each for each in forms() if any(form in child.forms for child in each.children)), None)
    places = [each for each in tree.iter(f"{XS}element") if each.get("name") == form.element]
    if around is not None and len(places) > 1:
        path_of = tree.getroottree().getpath
        inside = {each.getroottree().getpath(each) for each in schema_of(around).iter(f"{XS}element")}
        places = [each for each in places if path_of(each) in inside] or places
    return next(each for each in tree.iter(f"{XS}complexType") if each.get("name") == places[0].get("type"))


@pytest.mark.parametrize("form", {id(each): each for each in forms()}.values(), ids=lambda form: form.element)
def test_the_schema_agrees_with_the_reader(form: Form) -> None:
    described = schema_of(form)
    attributes = {str(each.get("name")): each.get("use") == "required" for each in described.iter(f"{XS}attribute")}
    read = {each.name: each.required for each in form.attributes}
    for name in form.aside:
        read.setdefault(name, form.key == name)
    assert attributes == read
    tree = described.getroottree().getroot()
    groups = {str(each.get("ref")) for each in described.iter(f"{XS}group")}
    children = {str(each.get("name")) for each in described.iter(f"{XS}element")}
    for group in tree.findall(f"{XS}group"):
        if group.get("name") in groups:
            children |= {str(each.get("name")) for each in group.iter(f"{XS}element")}
    expected = {inner.element for child in form.children for inner in child.forms} | set(form.foreign)
    assert children == expected | ({form.columns.element} if form.columns else set())


def test_the_schema_documents_every_element_and_attribute() -> None:
    tree = etree.parse(str(shipped(SCHEMA)))
    for kind in ("element", "attribute", "complexType", "simpleType", "enumeration"):
        for each in tree.iter(f"{XS}{kind}"):
            if each.get("name") or (each.get("value") and each.getparent().getparent().get("name")):
                assert each.find(f"{XS}annotation/{XS}documentation") is not None, etree.tostring(each)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("rate", "1 Gbit/s"), ("rate", "1.5Gb/s"), ("rate", "0"), ("rate", "fast"), ("rate", "1 Gbit"), ("rate", "9bps")],
)
def test_schema_and_reader_accept_the_same_rates(tmp_path: Path, attribute: str, value: str) -> None:
    text = GOOD.replace("$(CLIENTS)", "1").replace('rate="1 Gbit/s"', f'{attribute}="{value}"')
    path = written(tmp_path, text)
    try:
        read_scenario(path)
        accepted = True
    except InvalidFile:
        accepted = False
    assert schema_accepts(path) is accepted


def test_overrides_reach_every_place_of_the_ready_scenarios() -> None:
    for path in READY.values():
        read = read_scenario(path)
        for place in paths_of(read):
            try:
                apply_overrides(read, {place: ""})
            except InvalidInput as error:
                assert error.message.partition(".xml:")[2].partition(": ")[2].startswith(f"{place}: '' is not ")
            else:
                raise AssertionError(place)


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("horizon", "60s", lambda x: x.horizon_ns == 60 * SECOND_NS),
        ("profile[trading]/queue[D-1]/max-depth", "5", lambda x: x.profiles[0].queues["D-1"].max_depth_work_units == 5),
        ("profile/queue[*]/weight", "9", lambda x: {q.weight for q in x.profiles[0].queues.values()} == {9}),
        ("profile/mss", "1000", lambda x: x.profiles[0].tcp.mss_bytes == 1000),
        ("traffic[trades]/rate", "120/min", lambda x: x.traffic[1].arrivals.rate_per_second == 2.0),
        ("traffic[quotes]/on-off/on", "3s", lambda x: x.traffic[0].arrivals.on_ns == 3 * SECOND_NS),
        ("traffic[*]/stop", "infinite", lambda x: {t.stop_ns for t in x.traffic} == {INFINITE_NS}),
        ("group[desks]/loss", "5%", lambda x: x.groups[0].loss_probability == 0.05),
        ("broker/max-message", "2 MB", lambda x: x.broker.max_message_bytes == 2 * 1024**2),
    ],
)  # fmt: skip
def test_an_override_changes_one_value_and_leaves_the_original_alone(path: str, value: str, found: Any) -> None:
    read = read_scenario(READY["burst"])
    before = scenario_text(read)
    assert found(apply_overrides(read, {path: value}))
    assert scenario_text(read) == before


@pytest.mark.parametrize(
    ("path", "message", "remedy"),
    [
        ("trafic[quotes]/rate", "has no trafic[quotes]; did you mean traffic?", "traffic[quotes]"),
        ("traffic[x]/rate", "the scenario has no traffic[x]", "traffic[quotes], traffic[trades]"),
        ("traffic/rate", "has several traffic elements: name one", "traffic[quotes]"),
        ("traffic[quotes]/mmpp/state[1]/rate", "has no mmpp: there is on-off instead", "add the element in the file"),
        ("profile/queue[E-1]/max-depth", "profile has no queue[E-1]", "queue[G-1], queue[D-1]"),
        ("profile/queue[D-1]", "is an element; name the attribute to set", "queue[D-1]/max-depth"),
        ("horizon/x", "nothing can follow it", "horizon"),
        ("endpoint[desks]/flows", "the scenario has no endpoint", ""),
        ("a b", "is not a path", "Write elements and an attribute"),
        ("", "empty path", "Name an attribute"),
    ],
)
def test_a_path_that_leads_nowhere_lists_what_exists_there(path: str, message: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_overrides(read_scenario(READY["burst"]), {path: "1"})
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_a_short_name_of_a_setting_is_its_path_wherever_a_path_is_given() -> None:
    burst = read_scenario(READY["burst"])
    whole = "profile[*]/queue[D-1]/max-depth"
    assert apply_overrides(burst, {"max-depth(D-1)": "7"}).profiles == apply_overrides(burst, {whole: "7"}).profiles
    (axis,) = parse_axes(["max-depth( D-1 )=5,6"])
    assert (axis.path, axis.values) == (whole, ("5", "6"))
    assert parse_setting("max-depth(D-1)=5,6").path == whole
    with pytest.raises(UsageError, match=r"names profile.* twice"):
        parse_axes(["max-depth(D-1)=5,6", f"{whole}=7"])
    with pytest.raises(UsageError, match=r"has no queue.E-1"):
        apply_overrides(burst, {"max-depth(E-1)": "7"})


def test_rules_hold_after_overrides_too() -> None:
    changed = apply_overrides(read_scenario(READY["burst"]), {"traffic[quotes]/to": "nobody"})
    with pytest.raises(InvalidInput, match="there is no group 'nobody'"):
        check_rules(changed)


@given(st.integers(0, 2**62), st.integers(1, 10**13), st.integers(1, 2**31 - 1), st.floats(0, 1), st.floats(0, 1e9))
def test_values_are_written_so_that_they_read_back(
    duration: int, bits: int, size: int, probability: float, rate: float
) -> None:
    from qsctl.declared.values import DURATION
    from qsctl.sim.scenario.forms import values

    for value, number in (
        (DURATION, duration), (values.BIT_RATE, bits), (values.size(), size),
        (values.PROBABILITY, probability), (values.RATE, rate), (values.REAL, rate), (values.BOOLEAN, size % 2 == 0),
        (values.integer(0), size), (values.integer(1, unlimited=True), -1),
    ):  # fmt: skip
        assert value.parse(value.write(number)) == number


@pytest.mark.parametrize("name", ["shared-reader-queue", "trace-solace"])
def test_files_that_a_scenario_names_are_found_from_a_relative_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = find_scenario(name)
    monkeypatch.chdir(path.parent.parent)
    assert read_scenario(path.relative_to(path.parent.parent)) == read_scenario(path)
