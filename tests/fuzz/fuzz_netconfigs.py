"""NetConfigs: a site that can be linted and made a scenario of, or one `InvalidFile`."""

from __future__ import annotations

from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.netconfig.lint import lint_site
from qsctl.netconfig.read import parse_netconfig
from qsctl.sim.site.marks import marked_text
from qsctl.sim.site.scenario import site_scenario

DICTIONARY = (
    b"prologue\n", b"end_prologue\n", b"process p {\n", b"protocol t {\n", b"destination d {\n", b"}\n", b"{ ", b" }",
    b"{ PROCESSNAME p }", b"{ DATAXLATE { ", b"{ ROUTE_DETAILS { ", b"{ TRXID ADT_A01 }", b"{ TRXID {A.*} }",
    b"{ WILDCARD ON }", b"{ DEST {t u} }", b"{ TYPE raw }", b"{ TYPE xlate }", b"{ TYPE chain }", b"{ TYPE generate }",
    b"{ XLATE x.xlt }", b"{ CHAIN { ", b"{ PROCS { ", b"{ ARGS {} }", b"{ PROCSCONTROL {0} }", b"{ PREPROCS {a b} }",
    b"{ SMS { { IN_DATA ", b"{ OBWORKASIB 1 }", b"{ OUTBOUNDONLY 1 }", b"{ USERECOVERDB 0 }", b"{ PROTOCOL { ",
    b"{ PORT 1 }", b"{ HOST localhost }", b"{ ISSERVER 1 }", b"{ DETAILS_ENABLED 0 }", b"_HCI_static_route_",
    b"_HCI_static_else_route_", b"(a+)+$", b'"', b"\\", b"\\\n", b"#", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe4", b"\0",
)  # fmt: skip
SHORT_COUNT = 200


def one_input(data: bytes) -> None:
    try:
        reading = parse_netconfig(data, "f")
    except InvalidFile as error:
        assert 0 < len(error.problems) <= SHOWN_MAX
        assert all(each.line <= data.count(b"\n") + 1 for each in error.problems)
        assert len(error.message) < 100_000
        assert all(line.isprintable() for line in error.message.splitlines())
        return
    lines = data.count(b"\n") + 1
    findings = lint_site(reading.config)
    assert all(0 <= each.line <= lines and each.remedy for each in findings)
    made = site_scenario(reading.config, name="fuzzed")
    assert marked_text(made.scenario, made.notes).startswith("<?xml")
