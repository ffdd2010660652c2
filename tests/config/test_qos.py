"""QoS inheritance: what an element starts from, what overrides, what cannot be resolved."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest

from qsctl.config.qos_libraries.qos_tree import as_data
from qsctl.config.qos_libraries.transport_properties import properties_of
from qsctl.config.writer import effective_qos

RELIABLE = "<reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>"


def library(*profiles: str, name: str = "L") -> str:
    return f'<qos_library name="{name}">{"".join(profiles)}</qos_library>'


def profile(name: str, inside: str, attributes: str = "") -> str:
    return f'<qos_profile name="{name}" {attributes}>{inside}</qos_profile>'


def reader(inside: str, attributes: str = "") -> str:
    return f"<datareader_qos {attributes}>{inside}</datareader_qos>"


def depth(number: int) -> str:
    return f"<resource_limits><max_samples>{number}</max_samples></resource_limits>"


DEADLINE = "<deadline><period><sec>3</sec></period></deadline>"


@pytest.fixture
def queue_qos(text: Any, load: Any) -> Any:
    def run(*dds: str, queue: str) -> str:
        loaded = load(text(dds="".join(dds), queue=queue).xml())
        return str(loaded.configuration.service.participants[0].subscribers[0].queues[0].qos["datareader_qos"])

    return run


def test_own_values_override_those_of_the_base_and_the_rest_is_kept(queue_qos: Any) -> None:
    base = library(profile("A", reader(DEADLINE + depth(5))))
    assert queue_qos(base, queue=reader(depth(6), 'base_name="L::A"')) == reader(DEADLINE + depth(6)).replace(" >", ">")


def test_a_profile_of_the_same_library_is_named_without_it(queue_qos: Any) -> None:
    base = library(profile("A", reader(DEADLINE)), profile("B", "", 'base_name="A"'))
    assert queue_qos(base, queue=reader("", 'base_name="L::B"')) == f"<datareader_qos>{DEADLINE}</datareader_qos>"


def test_an_element_s_own_base_counts_instead_of_its_profile_s(queue_qos: Any) -> None:
    base = library(
        profile("A", reader(depth(1))),
        profile("B", reader(depth(2))),
        profile("C", reader(DEADLINE, 'base_name="L::B"'), 'base_name="L::A"'),
    )
    assert "<max_samples>2</max_samples>" in queue_qos(base, queue=reader("", 'base_name="L::C"'))


def test_of_several_bases_the_last_overrides(queue_qos: Any) -> None:
    base = library(profile("A", reader(depth(1) + DEADLINE)), profile("B", reader(depth(2))))
    names = "<base_name><element>L::A</element><element>L::B</element></base_name>"
    merged = queue_qos(base, queue=reader(names))
    assert "<max_samples>2</max_samples>" in merged
    assert DEADLINE in merged


def test_properties_merge_by_name_and_lists_are_replaced(text: Any, load: Any) -> None:
    def properties(**pairs: str) -> str:
        elements = "".join(
            f"<element><name>{key}</name><value>{value}</value></element>" for key, value in pairs.items()
        )
        return f"<property><value>{elements}</value></property>"

    def peers(*names: str) -> str:
        return f"<partition><name>{''.join(f'<element>{name}</element>' for name in names)}</name></partition>"

    base = library(
        profile(
            "A",
            f"<participant_qos>{properties(a='1', b='2')}</participant_qos><publisher_qos>{peers('x', 'y')}</publisher_qos>",
        )
    )
    own = f'<participant_qos base_name="L::A">{properties(b="3", c="4")}</participant_qos>'
    publisher = f'<publisher_qos base_name="L::A">{peers("z")}</publisher_qos>'
    participant = load(text(dds=base, participant=own, subscriber=publisher).xml()).configuration.service.participants[
        0
    ]
    assert participant.qos["participant_qos"] == f"<participant_qos>{properties(a='1', b='3', c='4')}</participant_qos>"
    assert participant.subscribers[0].qos["publisher_qos"] == f"<publisher_qos>{peers('z')}</publisher_qos>"


def test_a_default_profile_speaks_for_entities_without_an_element(text: Any, load: Any) -> None:
    base = library(profile("A", reader(depth(4)), 'is_default_qos="true"'))
    queue = load(text(dds=base).xml()).configuration.service.participants[0].subscribers[0].queues[0]
    assert queue.qos["datareader_qos"] == f"<datareader_qos>{depth(4)}</datareader_qos>"
    assert queue.qos["update_datareader_qos"] == f"<update_datareader_qos>{depth(4)}</update_datareader_qos>"
    assert queue.limits.waiting_count_max == 4


def test_libraries_of_several_files_are_merged_and_the_later_profile_counts(text: Any, load: Any) -> None:
    one = f"<dds>{library(profile('A', reader(depth(1))), profile('B', reader(depth(9))))}</dds>"
    two = f"<dds>{library(profile('A', reader(depth(2))))}</dds>"
    xml = text(queue=reader("", 'base_name="L::A"')).xml()
    queue = load(one, two, xml).configuration.service.participants[0].subscribers[0].queues[0]
    assert queue.qos["datareader_qos"] == f"<datareader_qos>{depth(2)}</datareader_qos>"


def test_a_builtin_library_is_tolerated_noted_and_kept(text: Any, check: Any, load: Any) -> None:
    xml = text(queue=reader(DEADLINE, 'base_name="BuiltinQosLibExp::Generic.StrictReliable"')).xml()
    assert [problem.severity for problem in check(xml)] == ["note"]
    loaded = load(xml)
    kept = loaded.configuration.service.participants[0].subscribers[0].queues[0].qos["datareader_qos"]
    assert kept.startswith('<datareader_qos base_name="BuiltinQosLibExp::Generic.StrictReliable">')
    assert len(loaded.configuration.notes) == 1


def test_an_unknown_profile_is_an_error_with_a_suggestion(text: Any, errors: Any) -> None:
    base = library(profile("Reliable", reader(DEADLINE)))
    found = errors(text(dds=base, queue=reader("", 'base_name="L::Relaible"')).xml())
    assert [problem.suggestion for problem in found] == ["Did you mean L::Reliable?"]


@pytest.mark.parametrize("names", [["A"], ["A", "B"], ["A", "B", "C", "D"]])
def test_a_circle_of_profiles_is_reported_with_its_members(names: list[str], text: Any, errors: Any) -> None:
    following = dict(zip(names, [*names[1:], names[0]], strict=True))
    base = library(*(profile(name, reader(DEADLINE), f'base_name="L::{after}"') for name, after in following.items()))
    found = errors(text(dds=base, queue=reader("", 'base_name="L::A"')).xml())
    assert found
    assert found[0].message == "QoS profiles are based on each other in a circle"
    assert all(f"L::{name}" in found[0].found for name in names)


def test_vendor_extensions_are_kept_and_reported_in_strict_mode_only(text: Any, check: Any, load: Any) -> None:
    extended = reader(
        "<zz_vendor><a b='1'>x</a></zz_vendor>"
        + RELIABLE.replace("<kind>", "<acknowledgment_kind>PROTOCOL</acknowledgment_kind><kind>")
    )
    xml = text(queue=extended).xml()
    assert check(xml) == []
    strict = check(xml, strict=True)
    assert [problem.severity for problem in strict] == ["note", "note"]
    kept = load(xml).configuration.service.participants[0].subscribers[0].queues[0].qos["datareader_qos"]
    assert '<zz_vendor><a b="1">x</a></zz_vendor>' in kept
    assert "<acknowledgment_kind>PROTOCOL</acknowledgment_kind>" in kept


def test_a_misspelt_policy_is_warned_of(text: Any, check: Any) -> None:
    found = check(text(queue=reader("<reliabilty><kind>RELIABLE_RELIABILITY_QOS</kind></reliabilty>")).xml())
    assert [(problem.severity, problem.suggestion) for problem in found] == [("warning", "Did you mean reliability?")]


def test_documented_defaults_are_overridden_by_a_file() -> None:
    given = "<datareader_qos><reader_resource_limits><max_app_ack_response_length>4</max_app_ack_response_length></reader_resource_limits></datareader_qos>"
    merged = effective_qos("shared_reader_queue", "datareader_qos", given)
    assert "<max_app_ack_response_length>4</max_app_ack_response_length>" in merged
    assert "<kind>KEEP_ALL_HISTORY_QOS</kind>" in merged
    assert effective_qos("shared_reader_queue", "datareader_qos", merged) == merged


def test_properties_of_a_base_are_kept_unless_inherit_is_false(text: Any, load: Any) -> None:
    library = """<qos_library name="L">
      <qos_profile name="A"><participant_qos><property><value><element><name>a</name><value>1</value></element></value></property></participant_qos></qos_profile>
      <qos_profile name="B" base_name="A"><participant_qos><property inherit="{}"><value><element><name>b</name><value>2</value></element></value></property></participant_qos></qos_profile>
    </qos_library>"""
    for inherit, names in (("true", ["a", "b"]), ("1", ["a", "b"]), ("false", ["b"]), ("0", ["b"])):
        xml = text(dds=library.format(inherit), participant='<participant_qos base_name="L::B"/>').xml()
        participant = load(xml).configuration.service.participants[0]
        assert list(properties_of(participant.qos["participant_qos"])) == names


def test_kinds_and_truth_values_have_one_spelling_but_texts_of_users_stay(queue_qos: Any) -> None:
    written = "<reliability><kind>DDS_RELIABLE_RELIABILITY_QOS</kind></reliability>"
    data = "<user_data><value>DDS_BOOLEAN_TRUE</value></user_data>"
    properties = "<property><value><element><name>a</name><value>DDS_BOOLEAN_TRUE</value></element></value></property>"
    assert queue_qos(queue=reader(data + written + properties)) == (
        reader(properties + RELIABLE + data).replace(" >", ">")
    )


def test_an_unknown_attribute_of_a_policy_is_a_vendors_and_a_misspelt_one_an_error(text: Any, check: Any) -> None:
    def severities(attribute: str, *, strict: bool = False) -> list[str]:
        xml = text(participant=f'<participant_qos><property {attribute}="true"/></participant_qos>').xml()
        return [problem.severity for problem in check(xml, strict=strict)]

    assert severities("tool") == []
    assert severities("tool", strict=True) == ["note"]
    assert severities("inherits") == ["error"]


def test_qos_as_data_is_a_tree_with_values_of_their_kind() -> None:
    text = (
        "<datareader_qos><deadline><period><nanosec>0</nanosec><sec>3</sec></period></deadline>"
        '<property inherit="false"><value><element><name>a</name><value>1</value></element></value></property>'
        "<reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability><user_data><value>7</value></user_data>"
        '<vendor a="1">true</vendor><writer_data_lifecycle><autodispose>true</autodispose></writer_data_lifecycle>'
        "</datareader_qos>"
    )
    assert as_data(text) == {
        "deadline": {"period": {"nanosec": 0, "sec": 3}},
        "property": {"@inherit": "false", "value": {"element": [{"name": "a", "value": "1"}]}},
        "reliability": {"kind": "RELIABLE_RELIABILITY_QOS"},
        "user_data": {"value": "7"},
        "vendor": {"@a": "1", "text": "true"},
        "writer_data_lifecycle": {"autodispose": True},
    }
