"""What a recording knows of one queue: samples that a store held before anything was known of them."""

from __future__ import annotations

from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.recording.queue_state import QueueState
from qsctl.identity import Guid, SampleIdentity


def test_a_sample_out_of_a_store_is_held_once_before_and_after_it_is_known() -> None:
    state = QueueState("P/S/Orders", "Orders", -1)
    state.unseen = 2
    assert state.counts_now().by_outcome[Outcome.HELD] == 2
    identity = SampleIdentity(Guid(b"w" * 16), 1)
    held = state.reveal(identity, -5, 0, is_logged=True)
    counts = state.counts_now()
    assert counts.by_outcome[Outcome.HELD] == 2
    assert sorted(counts.unfinished_since_ns) == [-5, 0]
    assert counts.arrived == 0, "it came before the recording began"
    state.leave(identity, held, 100)
    assert state.counts_now().by_outcome[Outcome.HELD] == 1
