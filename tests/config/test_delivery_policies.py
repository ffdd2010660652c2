"""Policies of a queue's endpoints that DDS lacks are said, with their names, and no others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qsctl.config.tables.qos import MAPPED_POLICIES
from qsctl.declared.problems import Problem
from qsctl.transport.dds.qos import _READER_POLICIES, _WRITER_POLICIES


def of_queue(qos: str, check: Callable[..., list[Problem]], text: Callable[..., object]) -> list[tuple[str, str]]:
    problems = check(text(queue=qos).xml())  # type: ignore[attr-defined]
    return [(str(problem.severity), problem.message) for problem in problems if "is not used" in problem.message]


def test_the_rule_and_the_transport_know_the_same_policies() -> None:
    known = {"datareader_qos": set(_READER_POLICIES), "datawriter_qos": set(_WRITER_POLICIES)}
    assert known == MAPPED_POLICIES


def test_a_policy_that_dds_lacks_is_named_and_one_that_it_has_is_not(
    check: Callable[..., list[Problem]], text: Callable[..., object]
) -> None:
    qos = """<datawriter_qos>
      <durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability>
      <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
      <protocol><rtps_reliable_writer><max_send_window_size>40</max_send_window_size></rtps_reliable_writer></protocol>
    </datawriter_qos>"""
    assert of_queue(qos, check, text) == [("warning", "<protocol> of <datawriter_qos> is not used")]
    assert of_queue("", check, text) == []


@pytest.mark.parametrize(
    "policy",
    [
        "<transport_priority><value>0x10</value></transport_priority>",
        "<durability/>",
        "<liveliness/>",
        "<ownership/>",
        "<destination_order/>",
    ],
)
def test_a_policy_that_dds_has_is_not_named(
    policy: str, check: Callable[..., list[Problem]], text: Callable[..., object]
) -> None:
    assert of_queue(f"<datawriter_qos>{policy}</datawriter_qos>", check, text) == []


def test_a_default_profile_gives_no_policies_to_the_replica_of_a_queue_without_one(
    check: Callable[..., list[Problem]], text: Callable[..., object]
) -> None:
    own = text(queue="").xml()  # type: ignore[attr-defined]
    profile = """<qos_library name="L"><qos_profile name="P" is_default_qos="true"><datawriter_qos>
      <protocol><push_on_write>true</push_on_write></protocol></datawriter_qos></qos_profile></qos_library>"""
    messages = [problem.message for problem in check(own.replace("<queuing_service", f"{profile}<queuing_service", 1))]
    assert "<protocol> of <datawriter_qos> is not used" in messages
    assert "<protocol> of <update_datawriter_qos> is not used" not in messages
    given = "<update_datawriter_qos><protocol><push_on_write>true</push_on_write></protocol></update_datawriter_qos>"
    assert of_queue(given, check, text) == [("warning", "<protocol> of <update_datawriter_qos> is not used")]
