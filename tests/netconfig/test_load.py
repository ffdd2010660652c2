"""The load of a site: statistics in each form, saved messages, two listings, tables of procedures; and broken ones."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from qsctl.core.integration.message import MessageId
from qsctl.declared.problems import InvalidFile, Problem, ProblemList
from qsctl.dumps.model import ListedMessage
from qsctl.instant import MILLISECOND_NS
from qsctl.netconfig.archives import SavedTraffic, hl7_type, hourly, read_archives, read_index
from qsctl.netconfig.listed_rates import listed_rates, waiting_of
from qsctl.netconfig.load import SiteLoad, ThreadLoad, add_archives, add_statistics
from qsctl.netconfig.procedures import parse_procedures
from qsctl.netconfig.statistics import parse_statistics

LISTS = "{a {{ALIVE 1} {MSGSIN 100} {MSGSOUT 0} {BYTESIN 5000} {LASTEXTRACT 1760000000} {START 1759999000}}}\n"
CSV = (
    "SYSTEM,SITENAME,THREADNAME,MSGSIN,MSGSOUT,BYTESIN,SAMPLE_DATE,SAMPLE_TIME\nh,s,a,100,0,5000,10/09/2025,08:53:20\n"
)
LABELS = "Section dump for thread a\n  Proto Status : 2\n  Msgs In : 100\n  Msgs Out : 0\n  Bytes In : 5,000\n"


def one(text: str) -> ThreadLoad:
    load = SiteLoad()
    add_statistics(load, parse_statistics(text.encode(), "stats"))
    return load.threads["a"]


def statistics(*dumps: tuple[int, int, int, int]) -> ThreadLoad:
    """The load of dumps: instant, messages in and out, and how many wait."""
    load, texts = SiteLoad(), []
    for at, came, sent, queued in dumps:
        texts.append(f"{{a {{{{LASTEXTRACT {at}}} {{MSGSIN {came}}} {{MSGSOUT {sent}}} {{OBDATAQD {queued}}}}}}}")
    add_statistics(load, [each for text in texts for each in parse_statistics(text.encode(), "stats")])
    return load.threads["a"]


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        (LISTS, 1_760_000_000.0),
        (CSV, 1_760_000_000.0),
        (LABELS, None),
        ("Thread Name : a\n" + LABELS[26:], None),
    ],
)
def test_statistics_are_read_in_each_form(text: str, at_s: float | None) -> None:
    (sample,) = parse_statistics(text.encode(), "stats")
    assert (sample.thread, sample.messages_in, sample.messages_out, sample.bytes_in) == ("a", 100, 0, 5000)
    assert sample.at_s == at_s


def test_one_dump_counts_since_its_thread_began() -> None:
    found = one(LISTS)
    assert found.arrived_per_s is not None
    assert found.arrived_per_s.value == pytest.approx(0.1)
    assert found.median_bytes is not None
    assert found.median_bytes.value == 50


def test_counts_between_dumps_are_rates_and_one_that_went_back_began_anew() -> None:
    found = statistics((10_000, 500, 0, 0), (11_000, 700, 0, 0), (12_000, 300, 0, 0))
    assert found.arrived_per_s is not None
    assert found.arrived_per_s.value == pytest.approx((200 + 300) / 2000)
    assert statistics((12_000, 700, 0, 0), (11_000, 500, 0, 0)).arrived_per_s is not None, "in the order of time"


def test_a_receiver_that_had_work_all_the_time_has_a_rate_and_what_came_is_not_what_went() -> None:
    found = statistics((0 + 1, 0, 0, 50), (1001, 0, 400, 150))
    assert found.served_per_s is not None
    assert found.sent_per_s is not None
    assert (found.served_per_s.value, found.sent_per_s.value) == pytest.approx((0.4, 0.5))
    assert statistics((1, 0, 0, 0), (1001, 0, 400, 150)).served_per_s is None


def test_dumps_over_a_day_give_rates_by_the_hour_from_midnight_on() -> None:
    hour, begin = 3600, 86_400 * 20_000 + 6 * 3600
    counts, total = [(begin, 0, 0, 0)], 0
    for number in range(24):
        total += 3600 * (1 + number)
        counts.append((begin + hour * (number + 1), total, 0, 0))
    steps = statistics(*counts).steps
    assert [seconds for _, seconds in steps] == [3600.0] * 24
    assert [rate for rate, _ in steps] == [19.0, 20.0, 21.0, 22.0, 23.0, 24.0, *map(float, range(1, 19))]


def test_statistics_without_a_time_are_a_note_and_an_interval_helps() -> None:
    load = SiteLoad()
    samples = [each for text in (LABELS, LABELS.replace("100", "160")) for each in parse_statistics(text.encode(), "s")]
    add_statistics(load, samples)
    assert "state no time" in load.notes[0]
    add_statistics(load, samples, 60.0)
    assert load.threads["a"].arrived_per_s is not None
    assert load.threads["a"].arrived_per_s.value == 1.0


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "no statistics of threads"),
        ("a b c\n", 0, "no statistics of threads"),
        (LISTS + "{b {{MSGSIN x}}}\n", 2, "msgsin is not a count"),
        (LISTS + "{b {{MSGSIN 1}\n", 2, "not closed"),
        (CSV + "h,s,b,1\n", 3, "the row is cut"),
        (LABELS + "  Msgs In : many\n", 6, "msgsin is not a count"),
        ("{MSGSIN 1} {MSGSOUT 2}", 1, "have no name"),
    ],
)
def test_what_is_no_statistics_is_named_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_statistics(text.encode(), "stats")
    assert caught.value.problems[0].line == line
    assert message in caught.value.problems[0].message


def entry(at: float, size: int = 100, source: str = "a", more: str = "{DESTCONN {}} {TYPE DATA}") -> str:
    return f"{{{{SOURCECONN {source}   }} {more} {{TIME {at}}} {{OFFSET 0}} {{LENGTH {size}}}}}\n"


def index(text: str, messages: bytes = b"") -> tuple[dict[tuple[str, bool], SavedTraffic], list[Problem]]:
    found: dict[tuple[str, bool], SavedTraffic] = {}
    problems = ProblemList("a.idx")
    read_index(io.BytesIO(text.encode()), found, problems, io.BytesIO(messages))
    return found, problems.problems


def test_saved_messages_have_rates_lengths_hours_and_types() -> None:
    text = "".join(entry(1_760_000_000 + 10 * number, 90 + number % 21) for number in range(101))
    found, problems = index(text, b"MSH|^~\\&|x|x|x|x|x||ORU^R01|1\r")
    assert problems == []
    load = SiteLoad()
    add_archives(load, found)
    thread = load.threads["a"]
    assert thread.arrived_per_s is not None
    assert thread.arrived_per_s.value == pytest.approx(0.101)
    assert thread.median_bytes is not None
    assert 95 < thread.median_bytes.value < 105
    assert 0 < thread.sigma < 0.1
    assert thread.types == {"ORU_R01": 101}
    assert sum(hourly(found["a", True])) == pytest.approx(101 / 3600)


def test_replies_are_passed_over_milliseconds_are_read_and_what_went_out_is_its_destination_s() -> None:
    out = "{DESTCONN b} {TYPE DATA}"
    text = entry(1_760_000_000_000, more=out) + entry(1_760_000_010_000, more=out) + entry(1, more="{TYPE REPLY}")
    found, _ = index(text)
    assert list(found) == [("b", False)]
    assert found["b", False].seconds == pytest.approx(10.0)


def test_broken_lines_of_an_index_are_named_one_problem_each() -> None:
    text = entry(1) + "{{SOURCECONN a} {TIME x}}\n" + "{{SOURCECONN {a} {TIME 1}}\n" + entry(2)
    found, problems = index(text)
    assert [each.line for each in problems] == [2, 3]
    assert found["a", True].messages >= 2


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"MSH|^~\\&|a|b|c|d|e||ADT^A01^X|1\rPID|", "ADT_A01"),
        (b"MSH#*~\\&#a#b#c#d#e##ACK#1", "ACK"),
        (b"PID|1", ""),
        (b"MSH|", ""),
        (b"MSH|^~\\&|a|b|c|d|e||\xff^A|", ""),
        (b"", ""),
    ],
)
def test_the_type_of_an_hl7_message_is_its_transaction_id(data: bytes, name: str) -> None:
    assert hl7_type(data) == name


def test_an_archive_is_read_with_its_folders(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.idx").write_text(entry(1) + entry(2))
    (tmp_path / "b.idx").write_text(entry(1, source="b") + entry(3, source="b"))
    assert {key: each.messages for key, each in read_archives(tmp_path).items()} == {("a", True): 2, ("b", True): 2}


def waiting(ids: range, source: str = "s") -> list[ListedMessage]:
    return [
        ListedMessage(MessageId(0, 0, each), 11, source=source, destination="d", size_bytes=10 * each) for each in ids
    ]


def test_two_listings_give_rates_only_of_destinations_that_were_always_busy() -> None:
    before, after = (
        waiting_of(waiting(range(1, 101))),
        waiting_of([*waiting(range(61, 111)), *waiting(range(200, 205), "t")]),
    )
    rates = listed_rates(before, after, 10.0)
    assert (rates["d"].served_per_s, rates["d"].arrived_per_s) == (6.0, 1.5)
    assert rates["d"].by_source == {"s": 1.0, "t": 0.5}
    assert listed_rates(before, waiting_of(waiting(range(150, 160))), 10.0) == {}, "it may have been empty between"
    assert listed_rates(before, before, 10.0) == {}, "it may be down"
    failed = [ListedMessage(MessageId(0, 0, 1), 303, destination="d")]
    assert waiting_of(failed).by_destination == {}


def test_a_table_of_procedures_is_found_by_patterns_in_order() -> None:
    rows = ("adt_lab.xlt,5ms,,,", "adt_*,40ms,exponential,,", "again,0s,,reroute,X")
    text = "\n".join(("# by hand", "name,takes,spread,does,transaction", *rows, ""))
    table = parse_procedures(text.encode(), "t.csv")
    first, other, again = table.row("adt_lab.xlt"), table.row("adt_x"), table.row("again")
    assert first is not None
    assert other is not None
    assert again is not None
    assert (first.takes_ns, other.spread, again.transaction) == (5 * MILLISECOND_NS, "exponential", "X")
    assert table.row("ADT_x") is None


def test_every_row_of_a_table_that_is_wrong_is_named() -> None:
    rows = (",1s,,,", "x,soon,,,", "y,1s,odd,,", "z,1s,,fly,", "w,1s,,reroute,", "v,1s,,,0", "u,infinite,,,")
    text = "\n".join(("name,takes,spread,does,every", *rows, ""))
    with pytest.raises(InvalidFile) as caught:
        parse_procedures(text.encode(), "t.csv")
    assert [each.line for each in caught.value.problems] == [2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(InvalidFile, match="no column takes"):
        parse_procedures(b"name,tekes\n", "t.csv")
    with pytest.raises(InvalidFile, match="Did you mean spread"):
        parse_procedures(b"name,takes,spred\n", "t.csv")
    with pytest.raises(InvalidFile, match="is empty"):
        parse_procedures(b"\n", "t.csv")
