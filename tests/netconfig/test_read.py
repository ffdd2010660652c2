"""A NetConfig: what is read of it, and every problem of a broken one in one run."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from qsctl.declared.problems import SHOWN_MAX, InvalidFile, Severity
from qsctl.errors import InvalidInput, NotFound, UsageError
from qsctl.netconfig._text import LARGEST_BYTES
from qsctl.netconfig.model import NetDetailKind, StackPlace
from qsctl.netconfig.read import parse_netconfig, read_netconfig
from tests.netconfig.made_site import made_site, netconfig_text

SITE = r"""prologue
    who: nobody
    type: net
end_prologue

# two processes
process adt {
    { AUTOSTART 1 }
}
process "lab results" { { AUTOSTART 0 } }

protocol adt_in {
    { AUTOSTART 1 }
    { DATAXLATE {
        {
            { ROUTE_DETAILS {
                {
                    { DEST {lab_out rad_out} }
                    { PROCS { { ARGS {} } { PROCS {} } { PROCSCONTROL {} } } }
                    { TYPE raw }
                }
                {
                    { DEST lab_out }
                    { DETAILS_ENABLED 0 }
                    { PREPROCS { { ARGS {{} {{MODE "a b"}}} } { PROCS {one two} } { PROCSCONTROL {1 0} } } }
                    { POSTPROCS {} }
                    { TYPE xlate }
                    { XLATE adt.xlt }
                }
                {
                    { CHAIN {
                        { { TYPE raw } { PROCS before } }
                        { { TYPE xlate } { XLATE first.xlt } { POSTPROCS {mid} } }
                        { { TYPE xslt } { XSLT second.xsl } { PREPROCS {late} } }
                    } }
                    { DEST far }
                    { TYPE chain }
                }
            } }
            { TRXID {ADT_A0\d} }
            { WILDCARD ON }
        }
        { { ROUTE_DETAILS {} } { TRXID _HCI_static_else_route_ } { WILDCARD OFF } }
    } }
    { OUTBOUNDONLY 0 }
    { PROCESSNAME adt }
    { PROTOCOL { { HOST {} } { ISSERVER 1 } { PORT 7001 } { TYPE tcpip } } }
    { SMS { { IN_DATA { { ARGS {} } { PROCS {check} } { PROCSCONTROL {} } } } { OUT_DATA {} } } }
    { USERECOVERDB 1 }
}
protocol lab_out {
    { OBWORKASIB 1 }
    { PROCESSNAME {lab results} }
    { PROTOCOL { { OBDIR /out } { TYPE fileset } } }
}
destination far { { SITE other } { THREAD in_there } }
"""


def problems_of(text: str | bytes, encoding: str | None = None) -> list[tuple[int, str]]:
    with pytest.raises(InvalidFile) as caught:
        parse_netconfig(text.encode() if isinstance(text, str) else text, "NetConfig", encoding)
    assert str(caught.value).count("NetConfig:") >= 1
    assert caught.value.remedy
    return [(each.line, each.message) for each in caught.value.problems if each.severity is Severity.ERROR]


def test_processes_threads_routes_stacks_and_destinations_are_read() -> None:
    reading = parse_netconfig(SITE.encode(), "NetConfig")
    config = reading.config
    assert reading.warnings == ()
    assert [(each.name, each.line) for each in config.processes] == [("adt", 7), ("lab results", 10)]
    thread = config.threads[0]
    assert (thread.name, thread.process, thread.line, thread.is_logged) == ("adt_in", "adt", 12, True)
    assert (thread.protocol.type, thread.protocol.port, thread.protocol.is_server) == ("tcpip", "7001", True)
    assert [each.name for each in thread.stack(StackPlace.IN_DATA)] == ["check"]
    assert thread.stack(StackPlace.OUT_DATA) == ()
    wild, other = thread.routes
    assert (wild.transaction_id, wild.is_wildcard, wild.line) == (r"ADT_A0\d", True, 15)
    assert (other.is_else, other.details) == (True, ())
    raw, translated, chain = wild.details
    assert (raw.kind, [each.name for each in raw.destinations]) == (NetDetailKind.RAW, ["lab_out", "rad_out"])
    assert (translated.is_enabled, translated.translations) == (False, ("adt.xlt",))
    assert [(each.name, each.is_enabled, each.arguments) for each in translated.pre] == [
        ("one", True, ""), ("two", False, '{MODE "a b"}'),
    ]  # fmt: skip
    assert (chain.kind, chain.translations) == (NetDetailKind.CHAIN, ("first.xlt", "second.xsl"))
    assert ([each.name for each in chain.pre], [each.name for each in chain.post]) == (["before"], ["mid", "late"])
    assert (config.threads[1].works_as_inbound, config.threads[1].process) == (True, "lab results")
    assert [(each.name, each.site, each.thread) for each in config.remotes] == [("far", "other", "in_there")]


def test_a_missing_brace_costs_its_part_alone() -> None:
    broken = SITE.replace("    { AUTOSTART 1 }\n}\nprocess", "    { AUTOSTART 1 }\nprocess", 1)
    assert problems_of(broken) == [(7, "the brace that opens here is not closed before the next part")]


def test_a_brace_too_many_is_named_where_it_is() -> None:
    broken = SITE.replace("    { PROCESSNAME adt }\n", "    { PROCESSNAME adt } }\n")
    line = SITE[: SITE.index("PROCESSNAME adt")].count("\n") + 2
    assert [each for each, _ in problems_of(broken)] == [line]


def test_all_problems_are_found_in_one_run() -> None:
    broken = (
        SITE.replace("{ TYPE xlate }\n                    { XLATE", "{ TYPE xlat }\n                    { XLATE")
        .replace("{ ISSERVER 1 }", "{ ISSERVER perhaps }")
        .replace("    { PROCESSNAME {lab results} }\n", "")
        .replace("destination far", "protocoll x {\n}\ndestination far")
    )
    found = dict(problems_of(broken))
    assert len(found) == 4
    assert {"the type of a route detail is not understood", "ISSERVER is not understood"} < set(found.values())
    assert {"the thread has no process", "this is not understood"} < set(found.values())


@pytest.mark.parametrize("cut", range(SITE.index("process adt") + 5, len(SITE), 37))
def test_a_file_that_is_cut_anywhere_is_read_or_its_last_part_is_named(cut: int) -> None:
    try:
        parse_netconfig(SITE[:cut].encode(), "NetConfig")
    except InvalidFile as error:
        begins = [at + 1 for at, line in enumerate(SITE[:cut].splitlines()) if line[:1].isalpha()]
        assert all(each.line >= begins[-1] or each.line == 0 for each in error.problems), error


@pytest.mark.parametrize(
    ("data", "encoding", "line"),
    [
        (codecs.BOM_UTF16_LE + SITE.encode("utf-16-le"), None, None),
        (SITE.encode("utf-16-be"), "utf-16-be", None),
        (codecs.BOM_UTF8 + SITE.replace("\n", "\r\n").encode(), None, None),
        (SITE.replace("two processes", "Prozeß").encode("cp1252"), "cp1252", None),
        (SITE.replace("two processes", "Prozeß").encode("latin-1"), None, 6),
    ],
    ids=["utf-16 with mark", "utf-16 named", "utf-8 with mark", "cp1252 named", "latin-1 guessed"],
)
def test_encodings_are_read_and_a_guess_is_a_warning(data: bytes, encoding: str | None, line: int | None) -> None:
    reading = parse_netconfig(data, "NetConfig", encoding)
    assert [each.name for each in reading.config.threads] == ["adt_in", "lab_out"]
    assert [each.line for each in reading.warnings] == ([] if line is None else [line])


def test_binary_data_and_wrong_encodings_are_named() -> None:
    assert (1, "this is binary data") in problems_of(b"\0\1\2")
    assert problems_of(SITE.replace("two", "zw\xf6lf").encode("latin-1"), "utf-8") == [(6, "this is not UTF-8")]
    with pytest.raises(UsageError, match="no encoding"):
        parse_netconfig(b"", "NetConfig", "klingon")


def test_a_file_that_is_something_else_is_one_error() -> None:
    assert problems_of("") == [(0, "there is no site in it")]
    assert problems_of("<xml/>\n" * 1000)[0] == (1, "this is not understood")
    with pytest.raises(NotFound, match="there is no such file"):
        read_netconfig(Path("nowhere/NetConfig"))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_netconfig(Path("/"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "protocol x { { DATAXLATE {" + "{ A b }" * 15_000 + " } } { PROCESSNAME p } }",
        "protocol x {\n" * 5_000,
        "protocol x { { DATAXLATE { " + "{" * 50_000,
        "x }\n" * 12_000,
        "protocol a { { A b }",
    ],
    ids=["long", "unclosed", "deep", "closing", "cut"],
)
def test_hostile_files_end_with_few_problems(text: str) -> None:
    assert 0 < len(problems_of(text)) <= SHOWN_MAX


def test_a_made_site_is_read_as_it_was_made() -> None:
    site = made_site(40)
    config = parse_netconfig(netconfig_text(site).encode(), "NetConfig").config
    assert [(each.name, each.process) for each in config.threads] == [
        (each.name, each.process) for each in site.threads
    ]
    for made, read in zip(site.threads, config.threads, strict=True):
        assert [(each.transaction_id, each.is_wildcard) for each in read.routes] == [
            (each.name, each.is_wildcard) for each in made.routes
        ]
        assert [[one.name for one in d.destinations] for each in read.routes for d in each.details] == [
            d.to for each in made.routes for d in each.details
        ]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "NetConfig"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_BYTES + 1)
    with pytest.raises(InvalidInput, match="larger than 32 MiB"):
        read_netconfig(path)
