"""Every fuzz target, shortly: its corpus, then some dozens of mutations of it. `campaign.py` is the long run."""

from __future__ import annotations

import pytest

from tests.campaigns import trials
from tests.fuzz.mutation import mutations
from tests.fuzz.target import load_target, target_names


@pytest.mark.campaign
@pytest.mark.parametrize("name", target_names())
def test_no_input_of_the_corpus_nor_a_mutation_of_one_breaks_a_rule(name: str) -> None:
    target = load_target(name)
    assert target.seeds, f"{target.corpus} is empty"
    count = trials("QSCTL_TEST_MUTATIONS", target.short_count // 4, 100 * target.short_count)
    for data in (*target.seeds, *mutations(target.seeds, target.dictionary, count)):
        try:
            target.one_input(data)
        except BaseException as problem:
            problem.add_note(f"broken by {data!r}")
            raise
