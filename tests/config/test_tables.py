"""The tables of settings: the XSD is the same, every field is in them, and every row reaches whatever uses tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from qsctl.cli.administer.queue_options import QueueOptions
from qsctl.cli.help.topics import page
from qsctl.config.configuration_xml import configuration_element, service_element
from qsctl.config.files.schema_model import schema_model
from qsctl.config.form import Element, QosElements, Repeated, Row, Setting, SettingPlace, Shape, settings_in
from qsctl.config.load import LoadedConfiguration, load_configuration
from qsctl.config.tables.queue import QUEUE
from qsctl.config.tables.service import SERVICE
from qsctl.config.writer import queue_snippet, write
from qsctl.core.queue.settings import IN_PLACE, SharedReaderQueueSettings
from qsctl.declared.values import BOOLEAN, DURATION, NUMERIC_BOOLEAN
from qsctl.shipped import shipped

XS = "{http://www.w3.org/2001/XMLSchema}"
SCHEMAS = sorted(shipped("schemas/queuing_service_values.xsd").parent.glob("*queuing_service*.xsd"))

ELSEWHERE = {
    "replication_settings": "a source of inheritance alone",
    "domain_participant/shared_subscriber/session_settings/session/monitoring": "a source of inheritance alone",
    "domain_participant/shared_subscriber/session_settings/session/replication": "a source of inheritance alone",
    "domain_participant/shared_subscriber/session_settings/session/statistics": "a source of inheritance alone",
    "domain_participant/shared_subscriber/session_settings/session/thread/dequeue_period": "another place of the same",
    "administration/distributed_logger/thread/dequeue_period": "of sessions; the type <thread> is theirs too",
}
"""Elements of the schema that are no row, and why."""


@cache
def declarations() -> dict[tuple[str, str], Any]:
    """The declaration of each child and attribute in the schema, by its parent's type and its name (`@` before)."""
    found: dict[tuple[str, str], Any] = {}
    for path in SCHEMAS:
        for complex_type in etree.parse(str(path)).getroot().findall(f"{XS}complexType"):
            for each in complex_type.iter(f"{XS}element", f"{XS}attribute"):
                name = str(each.get("name") or each.get("ref"))
                mark = "@" if each.tag == f"{XS}attribute" else ""
                found[(str(complex_type.get("name")), f"{mark}{name}")] = each
    return found


def in_the_schema(type_name: str, path: str = "") -> Iterator[tuple[str, tuple[str, str]]]:
    """Every setting that the schema knows: its path, and its declaration's key."""
    model = schema_model().elements[type_name]
    for attribute in model.attributes:
        yield f"{path}@{attribute}", (type_name, f"@{attribute}")
    for tag, child_type in model.children.items():
        here = f"{path}{tag}"
        if here in ELSEWHERE or (tag.endswith("_qos") and tag not in {"queue_qos", "service_qos"}):
            continue
        if child_type == "distribution_property":
            continue  # properties are rows of the table, and open in the schema
        if child_type in schema_model().elements and child_type not in {"duration", "duration_holder"}:
            yield from in_the_schema(child_type, f"{here}/")
        else:
            yield here, (type_name, tag)


DECLARED = dict(in_the_schema("queuing_service"))
ROWS = {place.path: place for place in settings_in(SERVICE)}
WRITTEN = {path: place for path, place in ROWS.items() if place.setting.shape is not Shape.PROPERTY}


def test_every_setting_of_the_schema_is_in_a_table_and_the_other_way_around() -> None:
    assert sorted(DECLARED) == sorted(WRITTEN)
    assert len(WRITTEN) > 100


@pytest.mark.parametrize("path", WRITTEN)
def test_a_row_has_the_type_default_and_words_of_the_schema(path: str) -> None:
    place, declaration = WRITTEN[path], declarations()[DECLARED[path]]
    setting = place.setting
    kind = "duration_holder" if setting.shape is Shape.HELD_DURATION else setting.value.schema_type
    assert declaration.get("type") == kind
    assert declaration.findtext(f"{XS}annotation/{XS}documentation") == setting.help
    default = place.default if setting.when_present is None else setting.when_present[0]
    if (
        declaration.get("minOccurs") == "0"
        and setting.shape is Shape.ELEMENT
        and "/distributed_logger/thread/" not in path
    ):
        written = None if default is None or default == "" else setting.value.write(default)
        assert declaration.get("default") == written


PROBES = [
    "-2",
    "-1",
    "0",
    "1",
    "2",
    "99",
    "100",
    "101",
    "232",
    "233",
    "2147483647",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "9223372036854775808",
    "0x1F",
    "1.5",
    "true",
    "NO",
    "Boolean_False",
    "maybe",
    "LENGTH_UNLIMITED",
    "DDS_LENGTH_UNLIMITED",
    "ROUND_ROBIN",
    "DDS_ROUND_ROBIN",
    "VOLATILE",
    "DDS_PERSISTENT",
    "WAL",
    "wal",
    "FULL",
    "NONE",
    "WAIT_WITHOUT_REPLACEMENT",
    "DDS_REJECT_WITHOUT_REPLACEMENT",
]
OPEN = {"text", "name", "topic_name_text", "type_reference", "file_prefix_text", "log_level", "thread_mask",
        "thread_priority", "thread_stack_size", "duration", ""}  # fmt: skip
"""Types whose form the schema alone checks, or that are no single text."""
SIMPLE = {place.setting.value.schema_type: place.setting.value for place in WRITTEN.values()}


@cache
def validator(type_name: str) -> etree.XMLSchema:
    includes = "".join(f'<xs:include schemaLocation="{path.as_uri()}"/>' for path in SCHEMAS if "rti" not in path.name)
    text = f'<xs:schema xmlns:xs="{XS[1:-1]}">{includes}<xs:element name="probe" type="{type_name}"/></xs:schema>'
    return etree.XMLSchema(etree.fromstring(text))


@pytest.mark.parametrize("type_name", sorted(set(SIMPLE) - OPEN))
def test_a_row_accepts_what_the_schema_accepts(type_name: str) -> None:
    value = SIMPLE[type_name]
    for text in PROBES:
        probe = etree.Element("probe")
        probe.text = text
        try:
            value.read(text)
            accepted = True
        except ValueError:
            accepted = False
        # The schema has no range for hexadecimal numbers, and cannot leave the 0 out between -1 and 1.
        looser = (type_name, text) in {("limit", "0"), ("increment", "0")}
        assert bool(validator(type_name).validate(probe)) == (accepted or looser), text


def made(rows: tuple[Row, ...], inside: Any = None) -> Iterator[tuple[Any, str]]:
    """Each field that the tables set, with its dataclass."""
    for row in rows:
        if isinstance(row, QosElements):
            yield inside, "qos"
        elif isinstance(row, Element):
            if row.makes:
                yield inside, row.field
            yield from made(row.rows, row.makes or inside)
        else:
            yield inside, row.field
            for form in row.forms if isinstance(row, Repeated) else ():
                yield from made(form.rows, form.makes)


def test_every_field_of_the_settings_is_in_a_table() -> None:
    elsewhere = {
        "service": "put together from the tables",
        "types": "not settings", "qos_libraries": "not settings", "notes": "not settings",
        "waiting_count_max": "follows from the reader's QoS", "sample_buffer": "the participant's",
        "is_dead_letter": "the tag says it",
    }  # fmt: skip
    set_by_tables = set(made(SERVICE.rows, SERVICE.makes))
    classes = {owner for owner, _ in set_by_tables}
    assert len(classes) > 20
    missing = {
        (owner.__name__, each.name)
        for owner in classes
        for each in fields(owner)
        if (owner, each.name) not in set_by_tables and each.name not in elsewhere
    }
    assert missing == set()


NAMED = {"DEAD_LETTER": "D", "name": "A", "topic_name_text": "Other", "type_reference": "DDS::String",
         "file_prefix_text": "Z", "log_level": "ERROR", "thread_mask": "X", "thread_priority": "7",
         "thread_stack_size": "65536", "text": "."}  # fmt: skip
"""A text of each type whose values are words."""
CHANGEABLE = {path: place for path, place in ROWS.items() if not path.endswith("@name")}


@pytest.fixture(scope="module")
def full() -> str:
    """A service with every element, as canonical XML."""
    queue = '<shared_reader_queue name="Q" session="A"><topic_name>T</topic_name><type_name>DDS::Octets</type_name><reply_type>DDS::Octets</reply_type></shared_reader_queue>'  # noqa: E501
    dead = '<dead_letter_shared_reader_queue name="D" session="A"><topic_name>X</topic_name></dead_letter_shared_reader_queue>'  # noqa: E501
    session = '<session_settings><session name="A"/></session_settings>'
    around = f'<domain_participant name="P"><domain_id>1</domain_id><shared_subscriber name="U">{session}{queue}{dead}</shared_subscriber></domain_participant>'  # noqa: E501
    own = "<administration><domain_id>1</domain_id><distributed_logger><queue_size>3</queue_size></distributed_logger></administration><monitoring><domain_id>1</domain_id></monitoring>"  # noqa: E501
    loaded = loaded_from(f'<dds><queuing_service name="S">{own}{around}</queuing_service></dds>')
    return etree.tostring(configuration_element(loaded.configuration), encoding="unicode")


def loaded_from(xml: str) -> LoadedConfiguration:
    literal = 'str://"' + xml.replace("\\", "\\\\").replace('"', '\\"') + '"'
    options: Any = {"variables": {}, "environment": {}, "working_directory": Path(), "is_elsewhere": True}
    return load_configuration([literal], configuration_name=None, default_files=False, **options)


def holder_of(start: Any, path: str) -> Any:
    """The element at a path of tags, made where it is missing; for a property the one with its value."""
    at = start
    for step in path.split("/"):
        if step == "property":
            (found,) = (e for e in at.iter("element") if e.findtext("name") == path.rpartition("/")[2])
            return found.find("value")
        if step.startswith("@"):
            break
        below = at.find(step)
        at = etree.SubElement(at, step) if below is None else below
    return at


def another(setting: Setting, written: str) -> str:
    """A value of the kind that is not the one written."""
    value = setting.value
    if value is DURATION:
        return "77"
    if value in {BOOLEAN, NUMERIC_BOOLEAN}:
        no, yes = value.write(False), value.write(True)
        return no if written == yes else yes
    if value.low is not None:
        return "5"
    return NAMED["DEAD_LETTER" if setting.tag == "dead_letter_queue" else value.schema_type] \
        if value.schema_type in NAMED else value.allowed.split(", ")[-1]  # fmt: skip


def text_at(start: Any, path: str, setting: Setting) -> str:
    holder = holder_of(start, path)
    if setting.shape is Shape.ATTRIBUTE:
        return str(holder.get(setting.tag) or "")
    if setting.value is DURATION:
        return str((holder if setting.shape is Shape.DURATION else holder.find("duration")).findtext("sec"))
    return holder.text or ""


@pytest.mark.parametrize("path", CHANGEABLE)
def test_a_value_of_a_row_is_read_written_and_has_its_origin(path: str, full: str) -> None:
    setting, root = CHANGEABLE[path].setting, etree.fromstring(full)
    service = root.find("queuing_service")
    holder = holder_of(service, path)
    if setting.shape is Shape.HELD_DURATION:
        holder = holder.find("duration")
    given = another(setting, text_at(service, path, setting))
    if setting.shape is Shape.ATTRIBUTE:
        holder.set(setting.tag, given)
    elif setting.value is DURATION:
        holder.find("sec").text, holder.find("nanosec").text = given, "0"
    else:
        holder.text = given
    loaded = loaded_from(etree.tostring(root, encoding="unicode"))
    assert text_at(service_element(loaded.configuration), path, setting) == given
    origins = {re.sub(r"\[[^]]*\]", "", key): origin for key, origin in loaded.origins.items()}
    assert origins[f"queuing_service/{path}"].startswith("str://1:")
    inside = path.partition("shared_subscriber/shared_reader_queue/")[2]
    if inside and given != text_at(write(QUEUE, SharedReaderQueueSettings("", "")), inside, setting):
        (queue, _) = loaded.configuration.service.participants[0].subscribers[0].queues
        difference = etree.fromstring(queue_snippet(queue))
        assert text_at(difference, inside, setting) == given
        assert len(list(difference.iter())) < len(list(write(QUEUE, queue).iter()))


def test_the_difference_of_a_queue_with_defaults_is_its_names() -> None:
    assert queue_snippet(SharedReaderQueueSettings("Q", "T")) == (
        '<shared_reader_queue name="Q"><topic_name>T</topic_name></shared_reader_queue>'
    )


OPTIONS = {place.path: place for place in settings_in(QUEUE) if place.setting.option}


@pytest.mark.parametrize("place", OPTIONS.values(), ids=OPTIONS)
def test_an_option_sets_the_field_of_its_row(place: SettingPlace) -> None:
    setting = place.setting
    assert setting.option
    typed: Any = True if setting.option.given is not None else next(iter(reversed(setting.option.words)), None)
    if typed is None:
        typed = 5 if setting.value.low is not None else "77s" if setting.value is DURATION else "Other"
    limit = {} if "percent" not in setting.field else {"max_count": 9}
    name = setting.option.name.removeprefix("--").replace("-", "_")
    queue = QueueOptions(**limit, **{name: typed}).settings("Q")
    plain = QueueOptions(**limit).settings("Q")
    assert text_at(write(QUEUE, queue), place.path, setting) != text_at(write(QUEUE, plain), place.path, setting)


def test_pages_list_what_is_changed_in_place_and_what_a_replay_varies() -> None:
    changed, varied = page("desired-state"), page("replay")
    for place in settings_in(QUEUE):
        assert place.makes is not None
        (field,) = (each for each in fields(place.makes) if each.name == place.setting.field)
        names = place.path.rpartition("/")[0].rpartition("/")[2], place.setting.tag
        if field.metadata.get(IN_PLACE):
            assert any(f"`{name}`" in changed for name in names), f"docs/desired-state.md has no row for {place.path}"
        if place.setting.replay:
            listed = re.search(rf"[`/]{place.setting.replay}`", varied)
            assert listed, f"docs/replay.md does not name {place.setting.replay}"
