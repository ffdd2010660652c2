"""The lifecycle table [QS Table 2.1]."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import qsctl
from qsctl.core.queue.sample import TRANSITIONS, Cause, Sample, SampleState
from qsctl.identity import NIL_GUID, SampleIdentity

FINAL = {SampleState.DELIVERED, SampleState.EXPIRED, SampleState.FAILED_DELIVERY, SampleState.FLUSHED}


def sample_in(state: SampleState) -> Sample:
    return Sample(1, SampleIdentity(NIL_GUID, 7), b"", 0, 0, 0, state=state)


def test_the_life_of_a_delivered_sample() -> None:
    sample = sample_in(SampleState.ARRIVED)
    states = []
    for cause in (Cause.STORE, Cause.ASSIGN, Cause.SEND, Cause.ACKNOWLEDGE):
        sample.move(cause)
        states.append(sample.state)
    assert states == [SampleState.ENQUEUED, SampleState.ASSIGNED, SampleState.SENT, SampleState.DELIVERED]


@pytest.mark.parametrize("failure", [Cause.REJECT, Cause.TIME_OUT])
@pytest.mark.parametrize(
    ("verdict", "state"), [(Cause.RETRY, SampleState.ENQUEUED), (Cause.GIVE_UP, SampleState.FAILED_DELIVERY)]
)
def test_a_failed_delivery_is_retried_or_given_up(failure: Cause, verdict: Cause, state: SampleState) -> None:
    sample = sample_in(SampleState.SENT)
    sample.move(failure)
    sample.move(verdict)
    assert sample.state is state


def test_a_sample_expires_in_any_state_of_the_queue() -> None:
    held = set(SampleState) - FINAL - {SampleState.ARRIVED}
    assert {state for state, cause in TRANSITIONS if cause is Cause.EXPIRE} == held


def test_nothing_leads_out_of_a_final_state_but_for_a_dead_sample_that_waits_for_room() -> None:
    dead = {SampleState.EXPIRED, SampleState.FAILED_DELIVERY}
    out = {(state, cause): after for (state, cause), after in TRANSITIONS.items() if state in FINAL}
    assert {state for state, _ in out} == dead
    assert {cause for _, cause in out} == {Cause.DEAD_LETTER, Cause.ACKNOWLEDGE, Cause.FLUSH}
    assert set(out.values()) <= FINAL, "no consumer is sent it any more"


def test_every_state_is_reached_and_every_cause_is_used() -> None:
    reached, before = {SampleState.ARRIVED}, set[SampleState]()
    while reached != before:
        before = set(reached)
        reached |= {after for (state, _), after in TRANSITIONS.items() if state in reached}
    assert reached == set(SampleState)
    assert {cause for _, cause in TRANSITIONS} == set(Cause)


def test_a_move_that_cannot_be_names_state_and_cause() -> None:
    sample = sample_in(SampleState.DELIVERED)
    with pytest.raises(AssertionError, match="no transition from DELIVERED by SEND"):
        sample.move(Cause.SEND)
    assert sample.state is SampleState.DELIVERED


@pytest.mark.parametrize(("state", "cause"), [(state, cause) for state in SampleState for cause in Cause])
def test_a_sample_changes_state_as_in_the_table(state: SampleState, cause: Cause) -> None:
    sample = sample_in(state)
    if (state, cause) in TRANSITIONS:
        sample.move(cause)
        assert sample.state is TRANSITIONS[state, cause]
    else:
        with pytest.raises(AssertionError):
            sample.move(cause)


def test_nothing_else_assigns_a_state() -> None:
    folder = Path(qsctl.__file__).parent / "core" / "queue"
    assigners = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr == "state"
    }
    assert assigners == {"sample.py"}
