"""Any settings through XML and back are the same settings; any tree of known tags gives settings or problems."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qsctl.config._build import waiting_count_max
from qsctl.config.configuration_xml import configuration_text
from qsctl.config.files.schema import explainer, gate_accepts
from qsctl.config.files.schema_model import VENDOR_EXTENSION, schema_model
from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization, Vacuum
from qsctl.config.load import judge_files, load_configuration
from qsctl.config.settings import (
    AdministrationSettings,
    ConfigurationReplicationSettings,
    DistributedLoggerSettings,
    MonitoringPublicationSettings,
    ReplyBufferSettings,
    ServiceConfiguration,
    ServicePersistenceSettings,
    ServiceQosSettings,
)
from qsctl.core.queue.settings import (
    DistributionSettings,
    HistoricalStatistics,
    MonitoringSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplacementKind,
    ReplicationSettings,
    ResourceLimitSettings,
    SampleBufferSettings,
    SessionSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.declared.problems import InvalidFile, Severity
from qsctl.instant import INFINITE_NS, SECOND_NS

INT32 = 2**31 - 1
names = st.from_regex(r"[A-Za-z0-9_.]{1,12}", fullmatch=True)
counts = st.integers(0, INT32)
positive = st.integers(1, INT32)
lengths = st.one_of(
    st.just(INFINITE_NS), st.integers(1, 1000 * SECOND_NS), st.integers(1, INT32 - 1).map(lambda s: s * SECOND_NS)
)
limits = st.one_of(st.just(-1), st.integers(1, 2**63 - 1))
sizes = st.integers(-1, INT32)

QOS_TEXTS = [
    "<datareader_qos><deadline><period><sec>3</sec></period></deadline></datareader_qos>",
    "<datareader_qos><resource_limits><max_samples>64</max_samples></resource_limits></datareader_qos>",
    '<datareader_qos><protocol><vendor a="1">x</vendor></protocol></datareader_qos>',
]
buffers = st.builds(SampleBufferSettings, sizes.filter(bool), st.booleans())
statistics = st.builds(
    StatisticsSettings, st.integers(1, SECOND_NS), st.builds(HistoricalStatistics, *[st.booleans()] * 5)
)
replications = st.builds(ReplicationSettings, st.booleans(), positive, lengths, st.booleans(), lengths)


@st.composite
def queues(
    draw: Any, at: int, session: str, dead_letter: bool, monitored: bool, buffer: Any
) -> SharedReaderQueueSettings:
    qos = {"datareader_qos": draw(st.sampled_from(QOS_TEXTS))} if draw(st.booleans()) else {}
    maximum = draw(limits)
    low, high = sorted(draw(st.tuples(st.integers(0, 100), st.integers(0, 100))))
    reply = draw(st.sampled_from(["", "DDS::String"])) if not dead_letter else ""
    persistence = draw(st.builds(PersistenceSettings, st.sampled_from(PersistenceKind), st.booleans(), st.booleans()))
    return SharedReaderQueueSettings(
        name=f"Q{at}",
        topic_name=f"T{at}",
        type_name="" if dead_letter else draw(st.sampled_from(["DDS::Octets", "Foo::Bar"])),
        reply_type=reply,
        reply_topic=f"R{at}" if reply else "",
        session=session,
        is_dead_letter=dead_letter,
        distribution=draw(st.builds(DistributionSettings, unacked_threshold=sizes, allow_consumer_feedback=st.booleans(), mark_last_undelivered_sample=st.booleans())),
        lifespan_ns=draw(lengths),
        redelivery=draw(st.builds(RedeliverySettings, counts, lengths)),
        persistence=persistence,
        app_ack_sample_to_producer=draw(st.booleans()),
        limits=ResourceLimitSettings(
            initial_count=draw(st.integers(1, maximum if 0 < maximum < INT32 else INT32)),
            max_count=maximum,
            incremental_count=draw(st.one_of(st.just(-1), positive)),
            max_in_memory_bytes=draw(limits),
            high_watermark_percent=draw(st.sampled_from([None, high])),
            low_watermark_percent=draw(st.sampled_from([None, low])),
            replacement=draw(st.sampled_from(ReplacementKind)),
            waiting_count_max=waiting_count_max(qos.get("datareader_qos", "")),
        ),
        sample_buffer=buffer,
        statistics=draw(statistics),
        monitoring=MonitoringSettings(monitored and draw(st.booleans()), draw(st.integers(2 * SECOND_NS, 90 * SECOND_NS))),
        replication=draw(replications),
        qos=qos,
    )  # fmt: skip


@st.composite
def subscribers(draw: Any, at: int, monitored: bool, buffer: Any) -> SharedSubscriberSettings:
    sessions = tuple(
        SessionSettings(f"A{n}", draw(lengths), "MASK_DEFAULT", draw(st.sampled_from(["THREAD_PRIORITY_DEFAULT", "7"])))
        for n in range(draw(st.integers(1, 2)))
    )
    number = draw(st.integers(0, 3))
    made = [
        draw(queues(n, sessions[0].name, dead_letter=n == 0, monitored=monitored, buffer=buffer)) for n in range(number)
    ]
    return SharedSubscriberSettings(f"U{at}", sessions, tuple(made))


@st.composite
def configurations(draw: Any) -> ServiceConfiguration:
    name = draw(names)
    administered = draw(st.booleans())
    period = draw(st.integers(2 * SECOND_NS, 60 * SECOND_NS))
    monitoring = draw(
        st.sampled_from(
            [None, MonitoringPublicationSettings(9, True, period), MonitoringPublicationSettings(9, False, period)]
        )
    )
    monitored = monitoring is not None and monitoring.enabled
    participants = []
    for at in range(draw(st.integers(1, 2))):
        buffer = draw(buffers)
        inside = tuple(draw(subscribers(10 * at + n, monitored, buffer)) for n in range(draw(st.integers(1, 2))))
        participants.append(DomainParticipantSettings(f"P{at}", draw(st.integers(0, 232)), inside, buffer))
    replication = draw(replications)
    configured = draw(replications) if administered else ReplicationSettings()
    return ServiceConfiguration(
        name=name,
        service=ServiceSettings(
            application_name=name,
            participants=tuple(participants),
            monitoring=MonitoringSettings(monitored, monitoring.status_publication_period_ns if monitoring else 5 * SECOND_NS),
            statistics=draw(statistics),
            replication=replication,
        ),
        administration=AdministrationSettings(
            draw(st.integers(0, 232)),
            draw(st.builds(ReplyBufferSettings, sizes.filter(bool), st.booleans())),
            draw(st.sampled_from([DistributedLoggerSettings(), DistributedLoggerSettings(True, "ERROR", 64, thread_mask="MASK_DEFAULT")])),
            key_file=draw(st.sampled_from([None, Path("admin.key")])),
        ) if administered else None,
        monitoring=monitoring,
        filesystem=draw(st.builds(FilesystemSettings, st.sampled_from([None, Path()]), st.from_regex(r"[A-Za-z0-9_.\-]{1,8}", fullmatch=True), positive, st.sampled_from(JournalMode), st.sampled_from(Synchronization), st.sampled_from([None, Path("t.sql")]), st.sampled_from(Vacuum))),
        service_qos=ServiceQosSettings(
            draw(st.builds(ServicePersistenceSettings, st.sampled_from(PersistenceKind), st.booleans())),
            ConfigurationReplicationSettings(configured),
            replication,
        ),
    )  # fmt: skip


def reload(text: str, directory: Path) -> ServiceConfiguration:
    path = directory / "a.xml"
    path.write_text(text, encoding="utf-8")
    options: Any = {"variables": {}, "environment": {}, "working_directory": directory, "is_elsewhere": True}
    return load_configuration([path], configuration_name=None, **options).configuration


@given(configurations())
def test_settings_through_xml_and_back_are_the_same(configuration: ServiceConfiguration) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        text = configuration_text(configuration)
        again = reload(text, Path(directory))
        assert again == configuration
        assert configuration_text(again) == text


MODEL = schema_model()
TEXTS = st.sampled_from(
    ["", "1", "-1", "true", "0x10", "ROUND_ROBIN", "LENGTH_UNLIMITED", "Foo", "DURATION_INFINITE_SEC", "$(X)", "é"]
)


@st.composite
def trees(draw: Any, tag: str = "dds", type_name: str = "dds", depth: int = 0) -> etree._Element:
    """An element with children that the schema mostly allows, and now and then one that it does not."""
    element = etree.Element(tag)
    model = MODEL.elements.get(type_name)
    if model is None:
        element.text = draw(TEXTS)
        return element
    for key in draw(st.lists(st.sampled_from([*model.attributes, "odd"]), max_size=4, unique=True)):
        element.set(key, draw(st.sampled_from(["A", "B", "A::B", "string", "3", "true", "", "a b"])))
    for key in model.required_attributes:
        if draw(st.integers(0, 9)):
            element.set(key, draw(st.sampled_from(["A", "B", "int32"])))
    if depth > 9 or type_name == VENDOR_EXTENSION:
        return element
    for child in draw(st.lists(st.sampled_from([*(model.children or {"odd": ""})]), max_size=4)):
        element.append(draw(trees(child, model.children.get(child, ""), depth + 1)))
    return element


@given(trees())
def test_any_tree_of_known_tags_gives_settings_or_problems_and_both_validators_agree(tree: etree._Element) -> None:
    assert gate_accepts(tree) == explainer().is_valid(tree, use_location_hints=False)
    literal = 'str://"' + etree.tostring(tree, encoding="unicode").replace("\\", "\\\\").replace('"', '\\"') + '"'
    options: Any = {"variables": {}, "environment": {}, "working_directory": Path("/nonexistent")}
    problems = judge_files([literal], strict=True, **options).problems
    try:
        load_configuration([literal], configuration_name=None, **options)
    except InvalidFile as error:
        assert any(problem.severity is Severity.ERROR for problem in error.problems)
        assert problems


def test_a_chain_of_two_hundred_profiles_loads(text: Any, load: Any) -> None:
    profiles = "".join(
        f'<qos_profile name="R{at}" base_name="R{at - 1}"><datareader_qos><resource_limits>'
        f"<max_samples>{at}</max_samples></resource_limits></datareader_qos></qos_profile>"
        for at in range(1, 201)
    )
    first = '<qos_profile name="R0"><datareader_qos><deadline><period><sec>9</sec></period></deadline></datareader_qos></qos_profile>'
    dds = f'<qos_library name="L">{first}{profiles}</qos_library>'
    loaded = load(text(dds=dds, queue='<datareader_qos base_name="L::R200"/>').xml())
    queue = loaded.configuration.service.participants[0].subscribers[0].queues[0]
    assert queue.limits.waiting_count_max == 200
    assert "<deadline><period><sec>9</sec></period></deadline>" in queue.qos["datareader_qos"]


@pytest.mark.parametrize("depth", [5000])
def test_a_tree_of_five_thousand_structs_loads(depth: int, text: Any, load: Any) -> None:
    structs = "".join(
        f'<struct name="S{at}"><member name="m" type="nonBasic" nonBasicTypeName="S{at // 2}"/></struct>'
        for at in range(1, depth)
    )
    dds = f'<types><struct name="S0"><member name="m" type="int32"/></struct>{structs}</types>'
    library = load(text(dds=dds, type=f"<type_name>S{depth - 1}</type_name>").xml()).configuration.types
    assert len(library.definitions) == depth
    octets = library.json_to_cdr(f"S{depth - 1}", nested(depth - 1))
    assert library.cdr_to_json(f"S{depth - 1}", octets) == nested(depth - 1)


def nested(at: int) -> object:
    return {"m": 7} if at == 0 else {"m": nested(at // 2)}
