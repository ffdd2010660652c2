"""One test a rule across elements: what is reported, where, and how severely."""

# A table with one row a line reads better than one with a value a line.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from qsctl.config.rules import QUEUE_RULES, SERVICE_RULES, TREE_RULES

ERROR, UNSUPPORTED, WARNING, NOTE = "error", "unsupported", "warning", "note"
PROPERTY = "<participant_qos><property><value><element><name>{}</name><value>{}</value></element></value></property></participant_qos>"
ADMIN = "<administration><domain_id>3</domain_id></administration>"
REPLICATED = "<replication><replication_settings>{}</replication_settings></replication>"
PERSISTENT = "<persistence><kind>PERSISTENT</kind></persistence>"
FILES = "<persistence_settings><filesystem>{}</filesystem></persistence_settings>"
LIMITS = "<resource_limits>{}</resource_limits>"
COUNTS = LIMITS.format("<queue_allocation_settings>{}</queue_allocation_settings>")
OTHER = '<shared_reader_queue name="{}" session="A"><topic_name>{}</topic_name><type_name>DDS::String</type_name></shared_reader_queue>'
SECOND_PARTICIPANT = f"""<domain_participant name="P2"><domain_id>1</domain_id><shared_subscriber name="U">
<session_settings><session name="A"/></session_settings><shared_reader_queue name="Q" session="A"><topic_name>T</topic_name>
<type_name>DDS::Octets</type_name><queue_qos>{PERSISTENT}</queue_qos></shared_reader_queue></shared_subscriber></domain_participant>"""


@dataclass(frozen=True)
class Broken:
    rule: str
    severity: str
    message: str
    parts: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)


def broken(rule: str, severity: str, message: str, options: dict[str, Any] | None = None, **parts: str) -> Broken:
    return Broken(rule, severity, message, parts, options or {})


RULES = [
    broken("required_and_single_children", ERROR, "<domain_participant> needs a <domain_id>", domain="<!-- none -->"),
    broken("required_and_single_children", ERROR, "<dead_letter_shared_reader_queue> occurs 2 times in <shared_subscriber>", subscriber='<dead_letter_shared_reader_queue session="A"><topic_name>X</topic_name></dead_letter_shared_reader_queue><dead_letter_shared_reader_queue session="A"><topic_name>Y</topic_name></dead_letter_shared_reader_queue>'),
    broken("services_have_distinct_names", ERROR, "two services have the name S", dds='<queuing_service name="S"><domain_participant name="P"><domain_id>0</domain_id><shared_subscriber name="U"><session_settings><session name="A"/></session_settings></shared_subscriber></domain_participant></queuing_service>'),
    broken("participants_have_distinct_names", ERROR, "two domain participants have the name P", service=SECOND_PARTICIPANT.replace("P2", "P")),
    broken("subscribers_have_distinct_names", ERROR, "two shared subscribers have the name U", participant='<shared_subscriber name="U"><session_settings><session name="A"/></session_settings></shared_subscriber>'),
    broken("sessions_have_distinct_names", ERROR, "two sessions have the name A", sessions='<session name="A"/><session name="A"/>'),
    broken("queues_have_distinct_names", ERROR, "two queues have the name Q", subscriber=OTHER.format("Q", "V")),
    broken("queues_have_distinct_topics", ERROR, "two queues of the shared subscriber have the topic T", subscriber=OTHER.format("R", "T")),
    broken("profiles_have_distinct_names", ERROR, "two profiles have the name R", dds='<qos_library name="L"><qos_profile name="R"/><qos_profile name="R"/></qos_library>'),
    broken("sessions_exist", ERROR, "the shared subscriber has no such session", attributes=' name="Q" session="B"'),
    broken("dead_letter_queues_exist", ERROR, "the shared subscriber has no such dead-letter queue", attributes=' name="Q" session="A" dead_letter_queue="D"'),
    broken("infinite_nanoseconds_need_infinite_seconds", ERROR, "infinite nanoseconds beside finite seconds mean nothing", queue_qos="<lifespan><duration><sec>1</sec><nanosec>DURATION_INFINITE_NSEC</nanosec></duration></lifespan>"),
    broken("dequeue_period_stands_once", ERROR, "the session has two periods", sessions='<session name="A"><dequeue_period><sec>1</sec></dequeue_period><thread><dequeue_period><sec>1</sec></dequeue_period></thread></session>'),
    broken("properties_are_given_once", ERROR, "the property UNACKED_THRESHOLD is given twice", queue_qos="<distribution><property><value>" + "<element><name>UNACKED_THRESHOLD</name><value>1</value></element>" * 2 + "</value></property></distribution>"),
    broken("initial_count_is_within_max_count", ERROR, "<initial_count> is greater than <max_count>", queue_qos=COUNTS.format("<initial_count>3</initial_count><max_count>2</max_count>")),
    broken("low_watermark_is_below_high_watermark", ERROR, "<low_watermark> is above <high_watermark>", queue_qos=LIMITS.format("<queue_allocation_settings><max_count>9</max_count></queue_allocation_settings><queue_watermark_settings><high_watermark>10</high_watermark><low_watermark>11</low_watermark></queue_watermark_settings>")),
    broken("watermarks_need_a_limit", WARNING, "watermarks are percentages of limits, and the queue has none", queue_qos=LIMITS.format("<queue_watermark_settings><high_watermark>10</high_watermark></queue_watermark_settings>")),
    broken("reply_topic_needs_reply_type", WARNING, "<reply_topic> is ignored without <reply_type>", queue="<reply_topic>R</reply_topic>"),
    broken("reply_queue_does_not_collide", ERROR, "the topic of the implied reply queue is taken by the queue R", queue="<reply_type>DDS::String</reply_type>", subscriber=OTHER.format("R", "TReply")),
    broken("type_is_known_or_discovered", NOTE, "no file defines the type Unknown", type="<type_name>Unknown</type_name>"),
    broken("type_is_known_or_discovered", WARNING, "no file defines the type DDS::Octet", type="<type_name>DDS::Octet</type_name>"),
    broken("type_is_of_samples", ERROR, "the type E is neither a struct nor a union", dds='<types><enum name="E"><enumerator name="X"/></enum></types>', type="<type_name>E</type_name>"),
    broken("policies_are_consistent", ERROR, "<resource_limits/initial_samples> is out of range", queue="<datareader_qos><resource_limits><initial_samples>A</initial_samples></resource_limits></datareader_qos>"),
    broken("waiting_needs_a_bounded_reader", WARNING, "waiting samples do not hold the producer back", queue_qos=LIMITS.format("<replacement_policy><kind>WAIT_WITHOUT_REPLACEMENT</kind></replacement_policy>")),
    broken("lifespan_lets_a_sample_live", WARNING, "every sample expires as it arrives", queue_qos="<lifespan><duration><sec>0</sec></duration></lifespan>"),
    broken("lifespan_lets_a_sample_live", WARNING, "every delivery times out at once", queue_qos="<redelivery><response_timeout><duration><sec>DURATION_ZERO_SEC</sec></duration></response_timeout></redelivery>"),
    broken("monitoring_needs_general_monitoring", NOTE, "ignored: general monitoring is off", queue="<entity_monitoring><enabled>true</enabled></entity_monitoring>"),
    broken("sampling_is_shorter_than_publication", WARNING, "statistics are not sampled more often than the status is published", queue="<statistics><statistics_sampling_period><sec>5</sec></statistics_sampling_period></statistics>"),
    broken("periods_are_positive", ERROR, "<statistics_sampling_period> is zero", queue="<statistics><statistics_sampling_period><sec>0</sec></statistics_sampling_period></statistics>"),
    broken("periods_are_positive", WARNING, "statistics are never updated", queue="<statistics><statistics_sampling_period><sec>DURATION_INFINITE_SEC</sec></statistics_sampling_period></statistics>"),
    broken("sessions_dequeue_periodically", ERROR, "the dequeue period is zero", sessions='<session name="A"><dequeue_period><sec>0</sec></dequeue_period></session>'),
    broken("memory_limit_counts_only_in_memory", WARNING, "<max_in_memory_bytes> is ignored", queue_qos="<persistence><kind>PERSISTENT</kind><in_memory_state>0</in_memory_state></persistence>" + COUNTS.format("<max_in_memory_bytes>9</max_in_memory_bytes>")),
    broken("persistent_names_are_file_names", ERROR, "the topic of a persistent queue is part of file names", queue_qos=PERSISTENT, topic="<topic_name>a/b</topic_name>"),
    broken("application_name_is_a_file_name", ERROR, "the application name is part of file names", {"application_name": "../a"}, queue_qos=PERSISTENT),
    broken("sample_timeout_exceeds_master_timeout", WARNING, "samples give up before a new master can be elected", queue_qos=REPLICATED.format("<sample_timeout><sec>5</sec></sample_timeout>")),
    broken("one_replica_is_no_replication", WARNING, "a single instance is not replicated", queue_qos=REPLICATED.format("<queue_instances>1</queue_instances>")),
    broken("replicas_have_distinct_application_names", NOTE, "each instance of a replicated service needs an application name of its own", queue_qos="<replication/>"),
    broken("fixed_values_stay", ERROR, "history/kind of <datawriter_qos> cannot be changed here", queue="<datawriter_qos><history><kind>KEEP_LAST_HISTORY_QOS</kind></history></datawriter_qos>"),
    broken("policies_are_consistent", ERROR, "max_samples_per_instance is greater than max_samples (<datareader_qos>)", queue="<datareader_qos><resource_limits><max_samples>5</max_samples><max_samples_per_instance>6</max_samples_per_instance></resource_limits></datareader_qos>"),
    broken("policies_are_consistent", ERROR, "the deadline is shorter than the separation of the time-based filter", queue="<datareader_qos><deadline><period><sec>1</sec></period></deadline><time_based_filter><minimum_separation><sec>2</sec></minimum_separation></time_based_filter></datareader_qos>"),
    broken("policies_are_consistent", ERROR, "<period> is not a length of time", queue="<datareader_qos><deadline><period><sec>0x80000001</sec></period></deadline></datareader_qos>"),
    broken("policies_are_consistent", ERROR, "<resource_limits/max_samples> is out of range", queue="<datareader_qos><resource_limits><max_samples>0</max_samples></resource_limits></datareader_qos>"),
    broken("policies_are_consistent", ERROR, "<resource_limits/max_samples> is out of range", queue="<datareader_qos><resource_limits><max_samples>9999999999</max_samples></resource_limits></datareader_qos>"),
    broken("policies_are_consistent", ERROR, "initial_samples is greater than max_samples", queue="<datareader_qos><resource_limits><max_samples>5</max_samples><initial_samples>6</initial_samples></resource_limits></datareader_qos>"),
    broken("policies_are_consistent", ERROR, "the history of an instance is deeper than the resource limits", queue="<datawriter_qos><durability_service><history_depth>7</history_depth><max_samples_per_instance>6</max_samples_per_instance></durability_service></datawriter_qos>"),
    broken("policies_of_containers_are_consistent", ERROR, "the history of an instance is deeper than the resource limits", service='<monitoring><domain_id>3</domain_id><datawriter_qos><history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>3</depth></history><resource_limits><max_samples_per_instance>2</max_samples_per_instance></resource_limits></datawriter_qos></monitoring>'),
    broken("names_fit_the_wire", ERROR, "the names of topic and subscriber are too long together", topic=f"<topic_name>{'t' * 254}</topic_name>"),
    broken("names_fit_the_wire", ERROR, "the names of participant, subscriber and queue are too long together", attributes=f' name="{"q" * 254}" session="A"'),
    broken("names_fit_the_wire", ERROR, "the names of participant, subscriber and implied reply queue are too long together", attributes=f' name="{"q" * 247}" session="A"', queue="<reply_type>DDS::String</reply_type>"),
    broken("topics_are_no_endpoints_own", ERROR, "the topic is used for something else in this domain", topic="<topic_name>DCPSTopic</topic_name>"),
    broken("topics_are_no_endpoints_own", ERROR, "the topic is used for something else in this domain", subscriber=OTHER.format("R", "T@U")),
    broken("application_name_fits_the_wire", ERROR, "the application name cannot be sent", {"application_name": "é" * 128}),
    broken("persistent_names_are_file_names", ERROR, "the names of a persistent queue are too long together", queue_qos=PERSISTENT, topic=f"<topic_name>{'t' * 225}</topic_name>"),
    broken("administration_for_configuration_replication", ERROR, "configuration replication needs remote administration", service="<service_qos><configuration_replication/></service_qos>"),
    broken("participants_have_subscribers_of_distinct_files", ERROR, "a queue of the participant", service=SECOND_PARTICIPANT, queue_qos=PERSISTENT),
    broken("queues_are_within_the_limit", ERROR, "2 queues are more than <service_limits><max_queues> allows, which is 1", service="<service_limits><max_queues>1</max_queues></service_limits>", subscriber=OTHER.format("R", "V")),
    broken("administration_key_can_be_read", ERROR, "there is no key file", service=ADMIN.replace("</adm", "<key_file>nowhere.key</key_file></adm")),
    broken("administration_key_can_be_read", ERROR, "the key file /dev/null is not a regular file", service=ADMIN.replace("</adm", "<key_file>/dev/null</key_file></adm")),
    broken("administration_qos_stays", ERROR, "reliability/kind of <datareader_qos> cannot be changed here", service=ADMIN.replace("</adm", "<datareader_qos><reliability><kind>BEST_EFFORT_RELIABILITY_QOS</kind></reliability></datareader_qos></adm")),
    broken("directory_exists", ERROR, "the directory of the persistent files does not exist", service=FILES.format("<directory>nowhere</directory>")),
    broken("an_even_number_survives_no_more", WARNING, "two instances survive the loss of none: a quorum is both", {"application_name": "C"}, queue_qos="<replication/>"),
    broken("an_even_number_survives_no_more", WARNING, "4 instances survive the loss of 1, as 3 do", {"application_name": "C"}, queue_qos=REPLICATED.format("<queue_instances>4</queue_instances>")),
    broken("letters_of_all_queues_are_the_same", WARNING, "<update_datareader_qos> of queue Q is not used: that of the first replicated queue holds for all", {"application_name": "C"}, queue="<update_datareader_qos><deadline><period><sec>1</sec></period></deadline></update_datareader_qos>", queue_qos="<replication/>", subscriber=OTHER.format("R", "V").replace("</shared", "<queue_qos><replication/></queue_qos></shared")),
    broken("queue_instances_are_equal", UNSUPPORTED, "queue R has queue_instances 5, and queue Q 3: what a service replicates has the same members", {"application_name": "C"}, queue_qos=REPLICATED.format("<queue_instances>3</queue_instances>"), subscriber=OTHER.format("R", "V").replace("</shared", f"<queue_qos>{REPLICATED.format('<queue_instances>5</queue_instances>')}</queue_qos></shared")),
    broken("an_even_number_of_members_survives_no_more", WARNING, "two instances survive the loss of none: a quorum is both", service=ADMIN + "<service_qos><configuration_replication/></service_qos>"),
    broken("transports_are_served", UNSUPPORTED, "<domain_participant> requires what DDS does not support here: dds.sec.auth.identity_ca", participant=PROPERTY.format("dds.sec.auth.identity_ca", "ca.pem")),
    broken("transports_are_served", UNSUPPORTED, "<administration> requires what DDS does not support here: dds.sec.access.governance", service=ADMIN.replace("</adm", PROPERTY.format("dds.sec.access.governance", "g.p7s") + "</adm")),
    broken("transports_are_served", WARNING, "dds.transport.UDPv4.builtin.parent.deny_interfaces_list: the interface is that of --interface", participant=PROPERTY.format("dds.transport.UDPv4.builtin.parent.deny_interfaces_list", "eth0")),
    broken("transports_are_served", NOTE, "Cyclone DDS sets these by itself, their values are not used: dds.transport.UDPv4.builtin.recv_socket_buffer_size", participant=PROPERTY.format("dds.transport.UDPv4.builtin.recv_socket_buffer_size", "9")),
    broken("one_transport_a_domain", UNSUPPORTED, "two participants of domain 1 ask for different transports", service=ADMIN.replace("3", "1"), participant=PROPERTY.format("dds.transport.load_plugins", "dds.transport.tcp")),
    broken("domains_have_ports", UNSUPPORTED, "the ports of domain 231 do not fit 16 bits here", domain="<domain_id>231</domain_id>"),
    broken("initial_peers_are_given_to_serve", WARNING, "<initial_peers> is not used", participant="<participant_qos><discovery><initial_peers><element>udpv4://192.0.2.1</element></initial_peers></discovery></participant_qos>"),
    broken("policies_without_equivalent_are_said", WARNING, "<protocol> of <datareader_qos> is not used", queue="<datareader_qos><protocol/></datareader_qos>"),
    broken("policies_without_equivalent_are_said", WARNING, "<protocol> of <update_datareader_qos> is not used", queue="<update_datareader_qos><protocol/></update_datareader_qos>"),
    broken("persistent_names_are_file_names", ERROR, "the topic of a persistent queue is part of file names", queue_qos=PERSISTENT, queue="<reply_type>DDS::String</reply_type><reply_topic>a/b</reply_topic>"),
    broken("reply_queue_does_not_collide", ERROR, "the name of the implied reply queue is another queue's", queue="<reply_type>DDS::String</reply_type>", subscriber=OTHER.format("QReply", "V")),
    broken("unsafe_journal", WARNING, "a crash inside a transaction damages the database file", service=FILES.format("<journal_mode>MEMORY</journal_mode>")),
    broken("unsafe_journal", WARNING, "a crash inside a transaction damages the database file", service=FILES.format("<journal_mode>OFF</journal_mode>")),
    broken("unsynchronized_persistence", WARNING, "persistent samples are not synchronized with the disk", queue_qos=PERSISTENT),
    broken("write_ahead_log_without_full_synchronization", WARNING, "with WAL, NORMAL does not synchronize at commit", service=FILES.format("<journal_mode>WAL</journal_mode><synchronization>NORMAL</synchronization>")),
    broken("database_settings_without_a_database_are_said", WARNING, "no queue here is in a database file", service=FILES.format("<journal_mode>WAL</journal_mode><synchronization>FULL</synchronization>"), queue_qos=PERSISTENT),
    broken("trace_file_holds_payloads", WARNING, "every statement is traced", service=FILES.format("<trace_file>t.sql</trace_file>")),
]  # fmt: skip


def test_every_rule_has_a_test() -> None:
    rules = {rule.__name__ for rules in (TREE_RULES, QUEUE_RULES, SERVICE_RULES) for rule in rules}
    assert rules == {each.rule for each in RULES}


@pytest.mark.parametrize("each", RULES, ids=lambda each: f"{each.rule}: {each.message[:40]}")
def test_a_broken_rule_is_reported(each: Broken, text: Any, check: Any) -> None:
    xml = text(**each.parts).xml()
    found = [problem for problem in check(xml, **each.options) if problem.message.startswith(each.message)]
    assert len(found) == 1, check(xml, **each.options)
    assert found[0].severity == each.severity
    assert 0 < found[0].line <= len(xml.splitlines())
    assert found[0].path.startswith("dds")


def test_a_service_that_keeps_all_rules_has_no_problem(text: Any, check: Any) -> None:
    assert check(text().xml()) == []


def test_a_persistent_queue_with_full_synchronization_is_not_warned_of(text: Any, check: Any) -> None:
    service = FILES.format("<synchronization>FULL</synchronization>")
    assert check(text(service=service, queue_qos=PERSISTENT).xml()) == []


IN_MEMORY = "<persistence><kind>PERSISTENT</kind><in_memory_state>1</in_memory_state></persistence>"
ON_DISK = "<persistence><kind>PERSISTENT</kind><in_memory_state>0</in_memory_state></persistence>"


@pytest.mark.parametrize(
    ("service_qos", "queue_qos"),
    [(f"<service_qos>{PERSISTENT}</service_qos>", IN_MEMORY), ("", ON_DISK)],
    ids=["of the service", "of a queue"],
)
def test_settings_of_a_database_are_not_warned_of_where_there_is_one(
    service_qos: str, queue_qos: str, text: Any, check: Any
) -> None:
    files = FILES.format("<journal_mode>WAL</journal_mode><synchronization>FULL</synchronization>")
    without = check(text(service=files, queue_qos=IN_MEMORY).xml())
    assert ["no queue here is in a database file" in problem.message for problem in without] == [True]
    assert check(text(service=files + service_qos, queue_qos=queue_qos).xml()) == []


def test_a_named_application_needs_no_note_about_replicas(text: Any, check: Any) -> None:
    found = check(
        text(queue_qos=REPLICATED.format("<queue_instances>3</queue_instances>")).xml(), application_name="Cluster_1"
    )
    assert not found


def test_problems_of_an_inherited_value_are_reported_once(text: Any, check: Any) -> None:
    statistics = "<statistics><statistics_sampling_period><sec>9</sec></statistics_sampling_period></statistics>"
    found = check(text(service=statistics, subscriber=OTHER.format("R", "V")).xml())
    assert len(found) == 1
