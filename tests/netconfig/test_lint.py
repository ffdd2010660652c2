"""The rules of a site: twenty planted faults are found, and nothing is found in a site without one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from qsctl.declared.problems import Severity
from qsctl.netconfig.lint import SiteFinding, SiteRule, lint_site
from qsctl.netconfig.read import parse_netconfig
from tests.netconfig.made_site import made_site, netconfig_text, plant_faults
from tests.netconfig.site_load import load_of, procedures_of


def lint(text: str) -> list[SiteFinding]:
    return lint_site(parse_netconfig(text.encode(), "NetConfig").config)


def thread(name: str, routes: str = "", more: str = "", process: str = "p") -> str:
    return f"protocol {name} {{ {{ PROCESSNAME {process} }} {{ DATAXLATE {{ {routes} }} }} {more} }}\n"


def route(name: str, to: str, more: str = "") -> str:
    return f"{{ {{ TRXID {{{name}}} }} {{ ROUTE_DETAILS {{ {{ {{ TYPE raw }} {{ DEST {{{to}}} }} }} }} }} {more} }}"


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("threads", [60, 300])
def test_twenty_planted_faults_are_found_and_none_is_invented(threads: int, tmp_path: Path) -> None:
    site = made_site(threads)
    config = parse_netconfig(netconfig_text(site).encode(), "NetConfig").config
    clean = lint_site(config, load_of(site, tmp_path / "clean", 60), procedures_of(site))
    assert [each for each in clean if each.severity is not Severity.NOTE] == []

    plant_faults(site)
    assert len(site.planted) == 20
    text = netconfig_text(site)
    config = parse_netconfig(text.encode(), "NetConfig").config
    found = lint_site(config, load_of(site, tmp_path / "faulty", 60), procedures_of(site))
    faults = [each for each in found if each.severity is not Severity.NOTE]
    assert Counter((each.rule, each.thread) for each in faults) == Counter(site.planted)
    assert all(each.remedy and 0 < each.line <= text.count("\n") + 1 for each in faults)


def test_a_finding_names_the_line_of_the_destination() -> None:
    text = "process p {}\n" + thread("a", "\n\n" + route("X", "b\n bb"), "\n") + thread("b")
    (finding,) = lint(text)
    assert (finding.rule, finding.line, finding.thread) == (SiteRule.UNKNOWN_DESTINATION, 5, "a")
    assert "Did you mean" not in finding.remedy or "b" in finding.remedy


def test_a_disabled_detail_is_not_looked_at() -> None:
    disabled = "{ { TRXID X } { ROUTE_DETAILS { { { TYPE raw } { DEST nowhere } { DETAILS_ENABLED 0 } } } } }"
    text = "process p {}\n" + thread("a", route("Y", "b") + " " + disabled) + thread("b")
    assert [each.rule for each in lint(text)] == [SiteRule.UNROUTED_TRANSACTION]


def test_a_route_to_a_thread_that_works_as_inbound_is_a_cycle_only_if_it_leads_back() -> None:
    there = "{ OBWORKASIB 1 }"
    one_way = "process p {}\n" + thread("a", route("X", "b")) + thread("b", route("X", "c"), there) + thread("c")
    assert lint(one_way) == []
    back = "process p {}\n" + thread("a", route("X", "b"), there) + thread("b", route("X", "a"), there)
    assert [(each.rule, each.message) for each in lint(back)] == [
        (SiteRule.CYCLE, "messages go in a circle: a → b (route X) → a (route X)")
    ]
    itself = "process p {}\n" + thread("a", route("X", "a"), there)
    assert [each.rule for each in lint(itself)] == [SiteRule.CYCLE]


def test_a_cycle_by_a_folder_is_found() -> None:
    reads, writes = "{ PROTOCOL { { TYPE fileset } { IBDIR /x } } }", "{ PROTOCOL { { TYPE fileset } { OBDIR /x } } }"
    text = "process p {}\n" + thread("a", route("X", "b"), reads) + thread("b", "", writes)
    assert [each.message for each in lint(text)] == ["messages go in a circle: a → b (route X) → a (by its folder)"]


def test_threads_fed_by_replies_are_fed() -> None:
    replies = "{ REPLYXLATE { " + route("X", "b") + " } }"
    assert lint("process p {}\n" + thread("a", route("X", "a2"), replies) + thread("a2") + thread("b")) == []
