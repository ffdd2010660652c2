"""Reading selectors: the manual's own examples, the grammar's corners, and what an error says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.selector._build import MAX_DEPTH, Misfit
from qsctl.core.selector.expression import (
    EVERYTHING,
    And,
    Boolean,
    Expression,
    Field,
    Integer,
    Not,
    Octets,
    Or,
    Relation,
    SequenceNumber,
    StatusMask,
    Term,
    TermComparison,
    Text,
)
from qsctl.core.selector.parse import MAX_SIZE_BYTES, MAX_TOKENS, SelectorSyntaxError, parse_selector
from qsctl.errors import ExitStatus

UNDELIVERED = StatusMask.UNDELIVERED_MESSAGE_STATUS
SENT = StatusMask.SENT_MESSAGE_STATUS
GUID_1 = Octets(bytes(15) + b"\1")


def equal(left: Term, right: Term) -> TermComparison:
    return TermComparison(left, Relation.EQUAL, right)


A, B, C = (equal(Integer(0), Integer(number)) for number in (1, 2, 3))

READINGS = {
    "": EVERYTHING,
    " \n\t ": EVERYTHING,
    "@sample_queue_status = SENT_MESSAGE_STATUS": equal(Field.STATUS, SENT),
    "@sample_queue_status=UNDELIVERED_MESSAGE_STATUS": equal(Field.STATUS, UNDELIVERED),
    "@sample_queue_status = SENT_MESSAGE_STATUS | UNDELIVERED_MESSAGE_STATUS": equal(Field.STATUS, SENT | UNDELIVERED),
    "@original_sample_identity.writer_guid.value =\n&hex(00000000000000000000000000000001)": equal(
        Field.WRITER_GUID, GUID_1
    ),
    "@original_sample_identity.writer_guid.value = &hex(00000000000000000000000000000001) AND\n"
    "@original_sample_identity.sequence_number = (0,1)": And(
        (equal(Field.WRITER_GUID, GUID_1), equal(Field.SEQUENCE_NUMBER, SequenceNumber(1)))
    ),
    "@original_sample_identity.sequence_number <> (2,3)": TermComparison(
        Field.SEQUENCE_NUMBER, Relation.NOT_EQUAL, SequenceNumber(2 * 2**32 + 3)
    ),
    "(-1, 0xFFFFFFFF) = @original_sample_identity.sequence_number": equal(SequenceNumber(-1), Field.SEQUENCE_NUMBER),
    "@original_sample_identity.writer_guid.value=&HEX( 0000 0000 0000 0000 0000 0000 0000 0001 )": equal(
        Field.WRITER_GUID, GUID_1
    ),
    "0 = 1 OR 0 = 2 AND 0 = 3": Or((A, And((B, C)))),
    "0 = 1 AND 0 = 2 OR 0 = 3": Or((And((A, B)), C)),
    "NOT 0 = 1 AND 0 = 2": And((Not(A), B)),
    "NOT (0 = 1 AND 0 = 2)": Not(And((A, B))),
    "not not 0=1": Not(Not(A)),
    "(0=1)and(0=2)Or(0=3)": Or((And((A, B)), C)),
    "(0 = 1 AND 0 = 2) AND 0 = 3": And((And((A, B)), C)),
    "0 = 1 AND 0 = 2 AND 0 = 3": And((A, B, C)),
    "((0 = 1))": A,
    "tRuE <> false": TermComparison(Boolean(True), Relation.NOT_EQUAL, Boolean(False)),
    "'' = 'AND &hex('": equal(Text(""), Text("AND &hex(")),
    "+5 = -5": equal(Integer(5), Integer(-5)),
    "0x1f = 0X1F": equal(Integer(31), Integer(31)),
    "9223372036854775807L = -9223372036854775808l": equal(Integer(2**63 - 1), Integer(-(2**63))),
    "0xFFFFFFFF = 0xFFFFFFFFFFFFFFFFL": equal(Integer(2**32 - 1), Integer(2**64 - 1)),
    "@sample_queue_status = @sample_queue_status": equal(Field.STATUS, Field.STATUS),
    "&hex() = &hex(00)": equal(Octets(b""), Octets(b"\0")),
}


@pytest.mark.parametrize(("text", "tree"), READINGS.items())
def test_a_selector_reads_as(text: str, tree: Expression) -> None:
    assert parse_selector(text) == tree


REFUSALS: list[tuple[str, int, str, str]] = [
    ("1 = 1 AND", 10, "it ends too early", "Expected a field"),
    ("(1 = 1", 7, "it ends too early", "Expected ')'"),
    ("1 = 1 foo", 7, "'foo' is not allowed here", "Expected AND, OR or the end"),
    ("@sample_queue_status == SENT_MESSAGE_STATUS", 23, "'=' is not allowed here", "TRUE or FALSE"),
    ("@sample_queue_status = 5", 24, "an integer cannot be compared with @sample_queue_status", "SENT_MESSAGE_STATUS"),
    ("5 = @sample_queue_status", 1, "an integer cannot be compared with @sample_queue_status", "SENT_MESSAGE_STATUS"),
    ("'a' = TRUE", 7, "TRUE or FALSE cannot be compared with a string", "one type"),
    ("@original_sample_identity.sequence_number = 7", 45, "an integer cannot be compared", "number 7 is (0,7)"),
    (
        "@sample_queue_status = @original_sample_identity.sequence_number",
        1,
        "@sample_queue_status cannot be compared",
        "(high,low)",
    ),
    ("@original_sample_identity.writer_guid.value = &hex(01)", 47, "a GUID has 16 octets, not 1", "32 digits"),
    ("&hex(123) = &hex(12)", 1, "3 digits are no whole octets", "two digits"),
    ("&hex(0x12) = &hex(12)", 1, "'&hex(0x12)' is not allowed here", "&hex(…)"),
    ("@sample_queue_stat = SENT_MESSAGE_STATUS", 1, "there is no field '@sample_queue_stat'", "@sample_queue_status?"),
    ("@a.b = 1", 1, "there is no field '@a.b'", "@original_sample_identity.writer_guid.value"),
    ("sample_queue_status = SENT_MESSAGE_STATUS", 1, "there is no status", "Did you mean @sample_queue_status?"),
    ("@sample_queue_status = sent_message_status", 24, "there is no status", "Did you mean SENT_MESSAGE_STATUS?"),
    ("1 = 2147483648", 5, "2147483648 does not fit in 32 bits", "Write an L"),
    ("1 = -9223372036854775809L", 5, "does not fit in 64 bits", "64 bits"),
    (
        "@original_sample_identity.sequence_number = (2147483648,0)",
        46,
        "the high half 2147483648 is out of range",
        "2147483647",
    ),
    ("@original_sample_identity.sequence_number = (0,-1)", 48, "the low half -1 is out of range", "4294967295"),
    ("ANDROID = 1", 1, "there is no status 'ANDROID'", "UNDELIVERED_MESSAGE_STATUS"),
    ("1 = 1 \0", 7, "is not allowed here", "AND, OR or the end"),
    ("1 = 1; DROP TABLE", 6, "';' is not allowed here", "AND, OR or the end"),
]


@pytest.mark.parametrize(("text", "column", "problem", "remedy"), REFUSALS, ids=[each[0] for each in REFUSALS])
def test_a_wrong_selector_is_reported_with_place_fault_and_remedy(
    text: str, column: int, problem: str, remedy: str
) -> None:
    with pytest.raises(SelectorSyntaxError) as caught:
        parse_selector(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert caught.value.message.startswith(f"selector, column {column}: ")
    assert problem in caught.value.message
    assert remedy in caught.value.remedy
    assert caught.value.exit_status is ExitStatus.USAGE


def test_an_error_on_a_later_line_names_the_line() -> None:
    with pytest.raises(SelectorSyntaxError, match="line 2, column 3") as caught:
        parse_selector("1 = 1 AND\n  x = 1")
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_length_number_of_words_and_depth_are_bounded() -> None:
    parse_selector("(" * MAX_DEPTH + "1=1" + ")" * MAX_DEPTH)
    for text, problem in (
        ("(" * (MAX_DEPTH + 1) + "1=1" + ")" * (MAX_DEPTH + 1), "levels"),
        ("NOT " * (MAX_DEPTH + 1) + "1=1", "levels"),
        ("(" * 500, "ends too early"),
        ("1=1 AND " * (MAX_TOKENS // 4) + "1=1", "512 words"),
        ("1=1" + " " * MAX_SIZE_BYTES, "4 KiB"),
        ("'" + "é" * (MAX_SIZE_BYTES // 2) + "'='a'", "4 KiB"),
    ):
        with pytest.raises(SelectorSyntaxError, match=problem):
            parse_selector(text)


constants = st.one_of(
    st.integers(1, 7).map(StatusMask),
    st.integers(-(2**63), 2**63 - 1).map(SequenceNumber),
    st.binary(max_size=20).map(Octets),
    st.integers(-(2**63), 2**63 - 1).map(Integer),
    st.booleans().map(Boolean),
    st.text(st.characters(codec="utf-8", exclude_characters="'"), max_size=9).map(Text),
)
relations = st.sampled_from(Relation)
guids = st.binary(min_size=16, max_size=16).map(Octets)


def alike(constant: Term) -> st.SearchStrategy[TermComparison]:
    return st.builds(
        TermComparison, st.just(constant), relations, constants.filter(lambda c: type(c) is type(constant))
    )


comparisons = st.one_of(
    st.builds(TermComparison, st.just(Field.STATUS), relations, st.integers(1, 7).map(StatusMask)),
    st.builds(TermComparison, st.just(Field.WRITER_GUID), relations, guids),
    st.builds(TermComparison, guids, relations, st.just(Field.WRITER_GUID)),
    st.builds(
        TermComparison, st.just(Field.SEQUENCE_NUMBER), relations, st.integers(-(2**63), 2**63 - 1).map(SequenceNumber)
    ),
    st.builds(TermComparison, st.integers(-(2**63), 2**63 - 1).map(Integer), relations, st.just(Integer(3))),
    st.builds(TermComparison, st.booleans().map(Boolean), relations, st.booleans().map(Boolean)),
    st.builds(
        TermComparison,
        st.text(st.characters(codec="utf-8", exclude_characters="'"), max_size=9).map(Text),
        relations,
        st.just(Text("a")),
    ),
)
trees = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=4).map(lambda operands: And(tuple(operands))),
        st.lists(inner, min_size=2, max_size=4).map(lambda operands: Or(tuple(operands))),
    ),
    max_leaves=12,
)


@given(trees)
def test_a_printed_tree_reads_back_as_itself(tree: Expression) -> None:
    assert parse_selector(str(tree)) == tree


words = st.sampled_from(
    [
        "AND",
        "or",
        "NOT",
        "(",
        ")",
        "=",
        "<>",
        "|",
        ",",
        "1",
        "0x",
        "-7l",
        "'a",
        "'a'",
        "TRUE",
        "&hex(0)",
        "&hex(00)",
        "é",
    ]
    + [field.value for field in Field]
    + ["SENT_MESSAGE_STATUS", "\n", "@", ".", "&"]
)


@given(
    st.one_of(
        st.text(max_size=60), st.lists(words, max_size=20).map(" ".join), st.lists(words, max_size=9).map("".join)
    )
)
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        tree = parse_selector(text)
    except SelectorSyntaxError as error:
        assert error.column >= 1
        assert error.line <= text.count("\n") + 1
    except Misfit:  # must not get out
        pytest.fail("a misfit left the parser")
    else:
        assert parse_selector(str(tree)) == tree
