"""Load order, variables, literals, domain base, choosing a service; where values come from; forms of values."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qsctl.config.configuration_xml import service_element
from qsctl.config.files.load_order import sources_in_order, split_sources, unquote_literal
from qsctl.config.load import load_configuration
from qsctl.declared import values
from qsctl.declared.problems import InvalidFile
from qsctl.instant import INFINITE_NS, SECOND_NS


def profiles(number: int) -> str:
    qos = f"<datareader_qos><resource_limits><max_samples>{number}</max_samples></resource_limits></datareader_qos>"
    return f'<dds><qos_library name="L"><qos_profile name="R">{qos}</qos_profile></qos_library></dds>'


def test_six_sources_are_loaded_in_the_order_of_section_3_1(tmp_path: Path, text: Any) -> None:
    home = tmp_path / "home"
    (home / "resource" / "xml").mkdir(parents=True)
    here = tmp_path / "here"
    here.mkdir()
    (home / "resource" / "xml" / "NDDS_QOS_PROFILES.xml").write_text(profiles(1))
    (here / "variable.xml").write_text(profiles(2))
    (here / "USER_QOS_PROFILES.xml").write_text(profiles(3))
    service = text(queue='<datareader_qos base_name="L::R"/>').xml()
    (home / "resource" / "xml" / "RTI_QUEUING_SERVICE.xml").write_text(service.replace('name="S"', 'name="Default"'))
    (here / "USER_QUEUING_SERVICE.xml").write_text(service)
    (here / "given.xml").write_text(profiles(6))
    environment = {"NDDSHOME": str(home), "NDDS_QOS_PROFILES": "variable.xml"}
    ordered = sources_in_order(["given.xml"], environment=environment, working_directory=here)
    assert [source.path.name for source in ordered if source.path] == [
        "NDDS_QOS_PROFILES.xml", "variable.xml", "USER_QOS_PROFILES.xml",
        "RTI_QUEUING_SERVICE.xml", "USER_QUEUING_SERVICE.xml", "given.xml",
    ]  # fmt: skip

    def most(**options: Any) -> int:
        loaded = load_configuration(
            options.pop("sources", []), configuration_name="S", variables={}, environment=environment,
            working_directory=here, **options,
        )  # fmt: skip
        return loaded.configuration.service.participants[0].subscribers[0].queues[0].limits.waiting_count_max

    assert most() == 3
    assert most(sources=["given.xml"]) == 6
    with pytest.raises(InvalidFile, match="no such <queuing_service>"):
        most(sources=["given.xml"], default_files=False)


def test_a_default_file_that_is_also_given_is_loaded_once(tmp_path: Path, text: Any) -> None:
    (tmp_path / "USER_QUEUING_SERVICE.xml").write_text(text().xml())
    ordered = sources_in_order(["USER_QUEUING_SERVICE.xml"], environment={}, working_directory=tmp_path)
    assert len(ordered) == 1
    assert ordered[0].named


def test_a_file_of_the_environment_that_is_missing_is_an_error(tmp_path: Path, text: Any) -> None:
    (tmp_path / "a.xml").write_text(text().xml())
    with pytest.raises(InvalidFile, match="there is no such file"):
        load_configuration(
            ["a.xml"], configuration_name=None, variables={}, environment={"NDDS_QOS_PROFILES": "none.xml"},
            working_directory=tmp_path,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "names", "literals"),
    [
        ("a.xml", ["a.xml"], []),
        ("a.xml;b c.xml; ;", ["a.xml", "b c.xml"], []),
        ("file://a.xml", ["a.xml"], []),
        ('str://"<dds/>"', [], ["<dds/>"]),
        ('a.xml;str://"<dds><!-- ; --></dds>";b.xml', ["a.xml", "b.xml"], ["<dds><!-- ; --></dds>"]),
        (r'str://"<a n=\"1;2\"/>"', [], ['<a n="1;2"/>']),
        ('str://"<a n="1;2"/>"', [], ['<a n="1;2"/>']),
        ("str://<dds/>", [], ["<dds/>"]),
    ],
)
def test_sources_in_one_text(given: str, names: list[str], literals: list[str], tmp_path: Path) -> None:
    found = split_sources(given, tmp_path)
    assert [source.path for source in found if source.path] == [tmp_path / name for name in names]
    assert [source.literal for source in found if not source.path] == literals


def test_a_literal_may_have_a_backslash() -> None:
    assert unquote_literal(r'str://"a\\b\"c"') == 'a\\b"c'


def test_a_variable_comes_from_the_command_line_before_the_environment(text: Any, load: Any) -> None:
    xml = text(domain="<domain_id>$(D)</domain_id>", attributes=' name="Q$(N)" session="A"').xml()
    loaded = load(xml, variables={"D": "4"}, environment={"D": "5", "N": "x"})
    participant = loaded.configuration.service.participants[0]
    assert participant.domain_id == 4
    assert participant.subscribers[0].queues[0].name == "Qx"
    assert "$(D) from the command line" in loaded.origins["queuing_service[S]/domain_participant[P]/domain_id"]


def test_a_variable_without_a_value_is_named_with_its_line(text: Any, errors: Any) -> None:
    xml = text(topic="\n<topic_name>$(NO_SUCH)</topic_name>").xml()
    found = errors(xml)
    assert [problem.message for problem in found] == ["the variable NO_SUCH has no value"]
    assert "$(NO_SUCH)" in xml.splitlines()[found[0].line - 1]


@pytest.mark.parametrize("wrong", ["$()", "$(1X)", "$(A", "a $(B-C)"])
def test_what_only_looks_like_a_variable_is_an_error(wrong: str, text: Any, errors: Any) -> None:
    found = errors(text(topic=f"<topic_name>{wrong}</topic_name>").xml(), variables={"A": "x"})
    assert "this is not a variable" in [problem.message for problem in found]


def test_the_value_of_a_variable_cannot_add_elements_and_is_not_expanded_again(text: Any, errors: Any) -> None:
    xml = text(type="<type_name>$(X)</type_name>").xml()
    assert errors(xml, variables={"X": "Foo</type_name><reply_type>Bar"})[0].found.startswith("Foo</type_name>")
    assert errors(xml, variables={"X": "$(X)"})[0].found == "$(X)"


@pytest.mark.parametrize(
    ("name", "value"), [("$(X)", "$(HOME)"), ("$(X)", "a$(b"), ("$$(X)", "(HOME)"), ("$(X)(HOME)", "$")]
)
def test_a_variable_that_the_value_of_another_brings_is_an_error(name: str, value: str, text: Any, errors: Any) -> None:
    """The text of the running service, which `qsctl get config` prints, could not be read again."""
    xml = text(type=f"<type_name>{name}</type_name>").xml()
    found = [problem.message for problem in errors(xml, variables={"X": value})]
    assert found == ["the value of a variable contains a variable: values are not expanded again"]


def test_values_of_variables_are_bounded_and_legal(text: Any, errors: Any) -> None:
    assert (
        "characters that XML"
        in errors(text(type="<type_name>$(X)</type_name>").xml(), variables={"X": "\x01"})[0].message
    )
    many = text(type="<type_name>" + "$(X)" * 3 + "</type_name>").xml()
    messages = [problem.message for problem in errors(many, variables={"X": "y" * 500_000})]
    assert "the values of variables are too long together" in messages


def test_the_domain_base_is_added_to_every_domain_and_checked(text: Any, load: Any, errors: Any) -> None:
    service = (
        "<administration><domain_id>2</domain_id></administration><monitoring><domain_id>3</domain_id></monitoring>"
    )
    loaded = load(text(service=service).xml(), domain_id_base=50).configuration
    assert loaded.administration and loaded.administration.domain_id == 52
    assert loaded.monitoring and loaded.monitoring.domain_id == 53
    assert loaded.service.participants[0].domain_id == 51
    assert len(errors(text(service=service).xml(), domain_id_base=231)) == 2


def test_one_of_several_services_must_be_named(text: Any, load: Any) -> None:
    two = text().xml().replace("</dds>", text().xml().replace("<dds>", "").replace('name="S"', 'name="S2"'))
    with pytest.raises(InvalidFile, match="several services"):
        load(two)
    assert load(two, configuration_name="S2").configuration.name == "S2"
    with pytest.raises(InvalidFile, match="there is no such"):
        load(two, configuration_name="S3")


def test_a_later_file_replaces_a_service_of_the_same_name(text: Any, load: Any) -> None:
    loaded = load(text().xml(), text(domain="<domain_id>9</domain_id>").xml())
    assert loaded.configuration.service.participants[0].domain_id == 9
    assert [problem.severity for problem in loaded.problems] == ["note"]


def test_the_application_is_called_as_asked_or_after_the_configuration(text: Any, load: Any) -> None:
    assert load(text().xml()).configuration.service.application_name == "S"
    assert load(text().xml(), application_name="App").configuration.service.application_name == "App"


def test_inheritance_goes_from_the_queue_to_the_session_to_the_service(text: Any, load: Any) -> None:
    def statistics(seconds: int) -> str:
        period = f"<statistics_sampling_period><nanosec>{seconds}</nanosec></statistics_sampling_period>"
        return f"<statistics>{period}</statistics>"

    def sampling(**parts: str) -> tuple[int, str]:
        loaded = load(text(**parts).xml())
        queue = loaded.configuration.service.participants[0].subscribers[0].queues[0]
        path = "queuing_service[S]/domain_participant[P]/shared_subscriber[U]/shared_reader_queue[Q]"
        return queue.statistics.sampling_period_ns, loaded.origins[f"{path}/statistics/statistics_sampling_period"]

    sessions = f'<session name="A">{statistics(2)}</session>'
    assert sampling(service=statistics(1))[0] == 1
    assert sampling(service=statistics(1))[1].startswith("inherited from <statistics> of the service (str://1:")
    assert sampling(service=statistics(1), sessions=sessions)[1].startswith("inherited from session A")
    assert sampling(service=statistics(1), sessions=sessions, queue=statistics(3))[0] == 3
    assert sampling()[1] == "default of Table 3.7"


def test_a_queue_cannot_switch_monitoring_on_that_the_service_has_off(text: Any, load: Any) -> None:
    off = "<monitoring><enabled>false</enabled><domain_id>1</domain_id></monitoring>"
    own = "<entity_monitoring><enabled>true</enabled></entity_monitoring>"
    queue = load(text(service=off, queue=own).xml()).configuration.service.participants[0].subscribers[0].queues[0]
    assert not queue.monitoring.enabled


def test_replication_settings_alone_do_not_switch_replication_on(text: Any, load: Any) -> None:
    service = "<replication_settings><queue_instances>3</queue_instances></replication_settings>"
    queue = load(text(service=service).xml()).configuration.service.participants[0].subscribers[0].queues[0]
    assert (queue.replication.enabled, queue.replication.queue_instances) == (False, 3)


def test_a_queue_s_replication_inherits_each_setting_from_the_nearest_that_has_it(text: Any, load: Any) -> None:
    service = (
        "<replication_settings><queue_instances>3</queue_instances><master_timeout><sec>1</sec></master_timeout></replication_settings>"
        "<service_qos><shared_reader_queue_replication><enabled>true</enabled><replication_settings>"
        "<master_timeout><sec>2</sec></master_timeout></replication_settings></shared_reader_queue_replication></service_qos>"
    )
    own = "<replication><enabled>false</enabled><replication_settings><sample_timeout><sec>9</sec></sample_timeout></replication_settings></replication>"
    replication = (
        load(text(service=service, queue_qos=own).xml())
        .configuration.service.participants[0]
        .subscribers[0]
        .queues[0]
        .replication
    )
    assert not replication.enabled
    assert replication.queue_instances == 3
    assert replication.master_timeout_ns == 2 * SECOND_NS
    assert replication.sample_timeout_ns == 9 * SECOND_NS


def test_every_value_of_the_effective_configuration_has_an_origin(text: Any, load: Any) -> None:
    from qsctl.config.flatten import origin_at, values_of

    service = (
        "<administration><domain_id>1</domain_id></administration><monitoring><domain_id>1</domain_id></monitoring>"
    )
    dead = '<dead_letter_shared_reader_queue name="D" session="A"><topic_name>X</topic_name></dead_letter_shared_reader_queue>'
    queue = (
        "<reply_type>DDS::String</reply_type><datareader_qos><user_data><value>x</value></user_data></datareader_qos>"
    )
    loaded = load(text(service=service, subscriber=dead, queue=queue).xml())
    found = list(values_of(service_element(loaded.configuration, with_qos_defaults=True)))
    assert len(found) > 100
    assert [path for path, _ in found if not origin_at(dict(loaded.origins), path)] == []


def test_a_queue_without_a_name_gets_the_same_one_at_every_start(text: Any, load: Any) -> None:
    xml = text(attributes=' session="A"', topic="<topic_name>a/b</topic_name>").xml()
    first, again = (load(xml).configuration.service.participants[0].subscribers[0].queues[0].name for _ in range(2))
    assert first == again
    assert first.startswith("a_b_")


def test_defaults_of_the_settings_are_those_of_the_manual() -> None:
    from qsctl.config.filesystem import FilesystemSettings
    from qsctl.core.queue.settings import SessionSettings, SharedReaderQueueSettings

    queue, session, files = SharedReaderQueueSettings("", ""), SessionSettings(""), FilesystemSettings()
    assert queue.lifespan_ns == INFINITE_NS
    assert queue.redelivery.max_delivery_retries == 0
    assert queue.distribution.unacked_threshold == -1
    assert queue.limits.initial_count == 1
    assert queue.sample_buffer.min_size_bytes == 256
    assert queue.replication.sample_timeout_ns == 7 * SECOND_NS
    assert session.dequeue_period_ns == 10_000_000
    assert files.file_max_size_kb == 1000
    assert files.synchronization == "OFF"


@pytest.mark.parametrize("form", ["true", "1", "YES", "Boolean_True", "DDS_BOOLEAN_TRUE"])
def test_truth_values_have_many_forms(form: str) -> None:
    assert values.boolean(form) is True


@pytest.mark.parametrize("form", ["TRUE", "yes", "BOOLEAN_FALSE", "dds_boolean_true"])
def test_strict_mode_refuses_the_forms_of_the_field(form: str, text: Any, check: Any) -> None:
    xml = text(
        queue_qos=f"<reliability><app_ack_sample_to_producer>{form}</app_ack_sample_to_producer></reliability>"
    ).xml()
    assert check(xml) == []
    assert [problem.allowed for problem in check(xml, strict=True)] == ["true, false, 1 or 0"]


@pytest.mark.parametrize(
    ("sec", "nanosec", "length"),
    [
        ("1", "5", SECOND_NS + 5),
        ("0x10", "", 16 * SECOND_NS),
        ("", "7", 7),
        ("DURATION_ZERO_SEC", "DURATION_ZERO_NSEC", 0),
        ("DURATION_INFINITE_SEC", "0", INFINITE_NS),
        ("DDS_DURATION_INFINITE_SEC", "DDS_DURATION_INFINITE_NSEC", INFINITE_NS),
        ("2147483647", "4294967295", INFINITE_NS),
    ],
)
def test_durations_have_many_forms(sec: str, nanosec: str, length: int, text: Any, load: Any) -> None:
    parts = (f"<sec> {sec}\n</sec>" if sec else "") + (f"<nanosec>{nanosec}</nanosec>" if nanosec else "")
    queue_qos = f"<lifespan><duration>{parts}</duration></lifespan>"
    queue = load(text(queue_qos=queue_qos).xml()).configuration.service.participants[0].subscribers[0].queues[0]
    assert queue.lifespan_ns == length
