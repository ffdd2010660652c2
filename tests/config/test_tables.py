"""The tables of settings: the XSD is the same, every field is in them, and every row reaches whatever uses tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import pytest
from lxml import etree

from qsctl.config.form import Element, QosElements, Repeated, Row, Shape, settings_in
from qsctl.config.schema_model import schema_model
from qsctl.config.tables.service import SERVICE
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
