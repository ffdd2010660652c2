"""Statistics dumps, indexes of saved messages and tables of procedures: what is known of a site, or one error."""

from __future__ import annotations

import io
import math

from qsctl.declared.problems import SHOWN_MAX, InvalidFile, Problem, ProblemList
from qsctl.netconfig.archives import SavedTraffic, hl7_type, read_index
from qsctl.netconfig.load import SiteLoad, add_archives, add_statistics
from qsctl.netconfig.procedures import parse_procedures
from qsctl.netconfig.statistics import parse_statistics

DICTIONARY = (
    b"{adt_in {{MSGSIN 12} {MSGSOUT 3} {BYTESIN 99} {OBDATAQD 4} {LASTEXTRACT 1760000000} {START 1759990000}}}\n",
    b"{MSGSIN 1}", b"{THREADNAME a}", b"THREADNAME,MSGSIN,MSGSOUT,BYTESIN,OBDATAQD,SAMPLE_DATE,SAMPLE_TIME\n",
    b"a,1,2,3,4,01/02/2026,10:00:00\n", b"Thread Name : a\n", b"Msgs In : 12\n", b"Section for thread a\n", b" : ",
    b"{{MID {0 0 1}} {TYPE DATA} {SOURCECONN a} {DESTCONN {}} {TIME 1760000000.5} {OFFSET 0} {LENGTH 9}}\n",
    b"{TYPE REPLY}", b"{TIME 1e400}", b"{LENGTH -1}", b"name,takes,spread,does,every,results,to,transaction\n",
    b"x,5ms,exponential,drop,2,,,\n", b"y,1s,,reroute,,,,B\n", b"MSH|^~\\&|a|b|c|d|e||ADT^A01|", b"\r", b"\n", b"{",
    b"}",
    b'"', b",", b"\\", b"\0", b"\xff", b"\xef\xbb\xbf", b"999999999999999999999", b"nan", b"inf", b"-1", b"Never",
)  # fmt: skip
SHORT_COUNT = 300


def one_input(data: bytes) -> None:
    load = SiteLoad()
    try:
        add_statistics(load, parse_statistics(data, "f"), 60.0)
    except InvalidFile as error:
        _check(list(error.problems), data)
    problems = ProblemList("f")
    found: dict[tuple[str, bool], SavedTraffic] = {}
    read_index(io.BytesIO(data), found, problems, io.BytesIO(data))
    _check(problems.problems, data)
    add_archives(load, found)
    for each in load.threads.values():
        for figure in (each.arrived_per_s, each.sent_per_s, each.served_per_s, each.median_bytes):
            assert figure is None or (math.isfinite(figure.value) and figure.value >= 0)
        assert all(math.isfinite(rate) and rate >= 0 and seconds > 0 for rate, seconds in each.steps)
    assert hl7_type(data).isascii()
    try:
        table = parse_procedures(data, "f")
    except InvalidFile as error:
        _check(list(error.problems), data)
    else:
        assert all(row.name and row.takes_ns >= 0 for row in table.rows)


def _check(problems: list[Problem], data: bytes) -> None:
    assert len(problems) <= SHOWN_MAX
    assert all(each.line <= data.count(b"\n") + data.count(b"\r") + 1 for each in problems)
