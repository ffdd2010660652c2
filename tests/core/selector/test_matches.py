"""Which samples a selector selects, and that its index never hides one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.selector.expression import (
    EVERYTHING,
    And,
    Expression,
    Field,
    Not,
    Octets,
    Or,
    Relation,
    SequenceNumber,
    StatusMask,
    TermComparison,
)
from qsctl.core.selector.matches import MAX_ALTERNATIVES, identities_of, matches
from qsctl.core.selector.parse import parse_selector
from qsctl.identity import SampleIdentity, guid_from_hex

UNDELIVERED = StatusMask.UNDELIVERED_MESSAGE_STATUS
SENT = StatusMask.SENT_MESSAGE_STATUS
DELIVERED = StatusMask.DELIVERED_MESSAGE_STATUS

ONE = SampleIdentity(guid_from_hex("1"), 1)
GUID = "@original_sample_identity.writer_guid.value"
NUMBER = "@original_sample_identity.sequence_number"
G1 = f"{GUID} = &hex({1:032x})"
G2 = f"{GUID} = &hex({2:032x})"
HIGH = 5 << 32


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", {UNDELIVERED, SENT, DELIVERED}),
        ("@sample_queue_status = SENT_MESSAGE_STATUS", {SENT}),
        ("@sample_queue_status = SENT_MESSAGE_STATUS | UNDELIVERED_MESSAGE_STATUS", {SENT, UNDELIVERED}),
        ("@sample_queue_status <> SENT_MESSAGE_STATUS | UNDELIVERED_MESSAGE_STATUS", {DELIVERED}),
        ("SENT_MESSAGE_STATUS = @sample_queue_status", {SENT}),
        ("NOT @sample_queue_status = SENT_MESSAGE_STATUS", {UNDELIVERED, DELIVERED}),
        ("@sample_queue_status = @sample_queue_status", {UNDELIVERED, SENT, DELIVERED}),
        ("@sample_queue_status <> @sample_queue_status", set()),
        ("1 = 1", {UNDELIVERED, SENT, DELIVERED}),
        ("1 = 0x2", set()),
        ("'a' <> 'A'", {UNDELIVERED, SENT, DELIVERED}),
        ("SENT_MESSAGE_STATUS = SENT_MESSAGE_STATUS | DELIVERED_MESSAGE_STATUS", set()),
    ],
)
def test_a_selector_by_status_selects(selector: str, selected: set[StatusMask]) -> None:
    tree = parse_selector(selector)
    assert {status for status in StatusMask if matches(tree, ONE, status)} == selected


@pytest.mark.parametrize(
    ("selector", "identity", "selected"),
    [
        (G1, ONE, True),
        (G2, ONE, False),
        (f"{NUMBER} = (0,1)", ONE, True),
        (f"{NUMBER} = (5,0)", SampleIdentity(ONE.writer_guid, HIGH), True),
        (f"{NUMBER} = (0,5)", SampleIdentity(ONE.writer_guid, HIGH), False),
        (f"{G1} AND {NUMBER} = (0,1)", ONE, True),
        (f"{G1} AND {NUMBER} = (0,2)", ONE, False),
        (f"{G2} OR {NUMBER} = (0,1)", ONE, True),
    ],
)
def test_a_selector_by_identity_selects(selector: str, identity: SampleIdentity, selected: bool) -> None:
    assert matches(parse_selector(selector), identity, SENT) is selected


@pytest.mark.parametrize(
    ("selector", "identities"),
    [
        (f"{G1} AND {NUMBER} = (0,1)", {ONE}),
        (f"{G1} AND {NUMBER} = (0,1) AND @sample_queue_status = SENT_MESSAGE_STATUS", {ONE}),
        (f"{G1} AND ({NUMBER} = (0,1) OR {NUMBER} = (0,2))", {ONE, SampleIdentity(ONE.writer_guid, 2)}),
        (f"NOT ({GUID} <> &hex({1:032x}) OR {NUMBER} <> (0,1))", {ONE}),
        (f"{G1} AND {G2} AND {NUMBER} = (0,1)", set()),
        (f"{G1} AND (0,1) = (0,1)", None),
        (G1, None),
        (f"{G1} OR {NUMBER} = (0,1)", None),
        (f"NOT ({G1} AND {NUMBER} = (0,1))", None),
        (f"{G1} AND {NUMBER} <> (0,1)", None),
        (f"({G1} AND {NUMBER} = (0,1)) OR @sample_queue_status = SENT_MESSAGE_STATUS", None),
        ("", None),
    ],
)
def test_the_index_knows_the_identities_that_a_selector_pins(
    selector: str, identities: set[SampleIdentity] | None
) -> None:
    assert identities_of(parse_selector(selector)) == identities


def test_alternatives_are_bounded_and_still_hide_nothing() -> None:
    numbers = Or(tuple(TermComparison(Field.SEQUENCE_NUMBER, Relation.EQUAL, SequenceNumber(n)) for n in range(100)))
    guids = Or(
        tuple(
            TermComparison(Field.WRITER_GUID, Relation.EQUAL, Octets(n.to_bytes(16, "big")))
            for n in range(MAX_ALTERNATIVES // 100 + 1)
        )
    )
    assert identities_of(And((numbers, guids))) is None


GUIDS = [guid_from_hex("1"), guid_from_hex("2")]
SAMPLES = list(itertools.product([SampleIdentity(guid, n) for guid in GUIDS for n in (1, 2)], StatusMask))
leaves = st.one_of(
    st.builds(
        TermComparison, st.just(Field.WRITER_GUID), st.sampled_from(Relation), st.sampled_from(GUIDS).map(Octets)
    ),
    st.builds(
        TermComparison,
        st.just(Field.SEQUENCE_NUMBER),
        st.sampled_from(Relation),
        st.sampled_from([1, 2]).map(SequenceNumber),
    ),
    st.builds(TermComparison, st.integers(1, 7).map(StatusMask), st.sampled_from(Relation), st.just(Field.STATUS)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda operands: And(tuple(operands))),
        st.lists(inner, min_size=2, max_size=3).map(lambda operands: Or(tuple(operands))),
    ),
    max_leaves=8,
)


@given(trees)
def test_looking_up_pinned_identities_selects_what_a_scan_selects(tree: Expression) -> None:
    scanned = {(identity, status) for identity, status in SAMPLES if matches(tree, identity, status)}
    pinned = identities_of(tree)
    if pinned is not None:
        assert {identity for identity, _ in scanned} <= pinned


@given(trees)
def test_a_negated_selector_selects_the_others(tree: Expression) -> None:
    assert all(matches(Not(tree), *sample) is not matches(tree, *sample) for sample in SAMPLES)


def test_the_empty_selector_pins_nothing_and_selects_all() -> None:
    assert identities_of(EVERYTHING) is None
    assert all(matches(EVERYTHING, *sample) for sample in SAMPLES)
