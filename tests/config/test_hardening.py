"""Hostile and broken input: one clear error, in bounded time and memory, nothing fetched."""

# ruff: noqa: E501

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qsctl.config.files.document import BODY_LIMITS, FILE_LIMITS, DocumentLimits, parse_document
from qsctl.config.load import judge_files
from qsctl.declared.problems import InvalidFile, Problem


def check(path: Path) -> list[Problem]:
    return list(judge_files([path], variables={}, environment={}, working_directory=path.parent).problems)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t ", "the file is empty"),
        (b"hello", "this is not XML"),
        (b"<dds>", "this is not XML"),
        (b"<dds/><dds/>", "this is not XML"),
        (b"<dds>&undefined;</dds>", "this is not XML"),
        (b"<dds>\0</dds>", "a NUL byte is not XML"),
        (b"<dds>\xff</dds>", "this is not UTF-8"),
        ("<dds/>".encode("utf-16"), "the encoding is not UTF-8"),
        ("<dds/>".encode("utf-32-be"), "a NUL byte is not XML"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><dds>é</dds>'.encode("latin-1"), "the encoding is not UTF-8"),
        (b"<!DOCTYPE dds><dds/>", "a document type declaration is refused"),
        (b"<?xml version='1.0'?>\n<!-- c -->\n<?pi x?>\n<!DOCTYPE dds SYSTEM 'http://x.invalid/a.dtd'><dds/>", "a document"),
        (b"<!-- a\n--><!doctype dds><dds/>", "a document type declaration is refused"),
        (b"<dds>" + b"<a>" * 100 + b"</a>" * 100 + b"</dds>", "elements are nested too deeply"),
        (b"<dds>" + b"<a>" * 100_000, "this is not XML"),
        (b"<queuing_service name='S'/>", "this is not the root element"),
        (b"<dds/>", "there is no <queuing_service> (Table 3.1)"),
        (b"<x:dds xmlns:x='urn:x'/>", "this is not the root element"),
    ],
)  # fmt: skip
def test_bad_content_is_one_clear_error(data: bytes, message: str, tmp_path: Path) -> None:
    problems = check(write(tmp_path / "a.xml", data))
    assert problems
    assert problems[0].message.startswith(message), problems[0]


def test_a_doctype_inside_a_comment_or_text_is_none(tmp_path: Path) -> None:
    data = b"<!-- <!DOCTYPE dds> --><dds><!-- <!DOCTYPE dds> --></dds>"
    assert check(write(tmp_path / "a.xml", data))[0].message == "there is no <queuing_service> (Table 3.1)"


def test_a_byte_order_mark_of_utf_8_is_allowed(text: Any, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + text().xml().encode()
    assert check(write(tmp_path / "a.xml", data)) == []


def test_a_declared_encoding_does_not_matter_while_all_is_ascii(text: Any, tmp_path: Path) -> None:
    data = b'<?xml version="1.0" encoding="ISO-8859-1"?>' + text().xml().encode()
    assert check(write(tmp_path / "a.xml", data)) == []


def test_an_external_entity_is_refused_and_its_file_not_read(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", b"the secret")
    data = f'<!DOCTYPE dds [<!ENTITY x SYSTEM "{secret.as_uri()}">]><dds>&x;</dds>'.encode()
    problems = check(write(tmp_path / "a.xml", data))
    assert len(problems) == 1
    assert "the secret" not in str(problems[0])


def test_the_schema_location_of_a_file_is_never_fetched(text: Any, tmp_path: Path, monkeypatch: Any) -> None:
    import socket

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    place = (
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://127.0.0.1:9/a.xsd"'
    )
    good = text().xml().replace("<dds>", f"<dds {place}>")
    assert check(write(tmp_path / "a.xml", good.encode())) == []
    bad = good.replace("<domain_id>1<", "<domain_id>x<")
    assert [problem.found for problem in check(write(tmp_path / "b.xml", bad.encode()))] == ["x"]


def test_a_directory_a_missing_and_an_unreadable_file_are_errors(tmp_path: Path) -> None:
    assert check(tmp_path)[0].message == "this is a directory"
    assert check(tmp_path / "none.xml")[0].message == "there is no such file"
    os.mkfifo(tmp_path / "pipe")
    assert check(tmp_path / "pipe")[0].message == "this is not a regular file"
    looped = tmp_path / "loop"
    looped.symlink_to(looped)
    assert check(looped)[0].message.startswith("the file cannot be read")


def test_fifty_megabytes_of_nonsense_are_refused_by_their_size(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    with path.open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    assert check(path)[0].message == "the file is too large"


def test_many_small_elements_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(InvalidFile, match="too many elements"):
        parse_document(
            b"<dds>" + b"<a/>" * 20_000 + b"</dds>", "a", DocumentLimits(size_bytes=1_000_000, elements=1000)
        )


def test_a_file_of_unknown_elements_has_a_bounded_number_of_problems(tmp_path: Path) -> None:
    data = b"<dds>" + b"\n<unknown/>" * 60_000 + b"</dds>"
    assert 1 < len(check(write(tmp_path / "a.xml", data))) < 500


def test_bodies_of_commands_have_tighter_limits_than_files() -> None:
    assert BODY_LIMITS.size_bytes == 1024 * 1024 < FILE_LIMITS.size_bytes
    assert BODY_LIMITS.depth == 64


@given(st.binary(max_size=300))
@example(b"<dds><queuing_service name='&#0;'/></dds>")
@example(b'<dds><queuing_service name="S"><monitoring><domain_id>$(</domain_id></monitoring></queuing_service></dds>')
def test_any_bytes_give_problems_and_never_another_exception(data: bytes) -> None:
    try:
        parse_document(data, "a.xml")
    except InvalidFile as error:
        assert error.problems


FRAGMENTS = st.sampled_from(
    ["<dds>", "</dds>", "<queuing_service name='S'>", "</queuing_service>", "<domain_participant name='P'>",
     "</domain_participant>", "<domain_id>1</domain_id>", "<shared_subscriber name='U'>", "</shared_subscriber>",
     "<session_settings>", "<session name='A'/>", "</session_settings>", "<shared_reader_queue session='A'>",
     "</shared_reader_queue>", "<topic_name>T</topic_name>", "<types>", "</types>", "<struct name='X'/>", "<qos_library name='L'>",
     "</qos_library>", "<qos_profile name='R' base_name='R'/>", "<datareader_qos base_name='L::R'/>", "$(X)", "text", "<queue_qos>",
     "</queue_qos>", "<lifespan/>", "<administration/>", "<monitoring/>", "<const name='C' type='long' value='1/0'/>",
     "<enum name='E'/>", "<typedef name='D' type='D'/>", "<include file='../x'/>", "<union name='N'/>", "<member name='m' type='X'/>"]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=25))
def test_any_shuffle_of_tags_gives_settings_or_problems(parts: list[str]) -> None:
    from qsctl.config.load import load_configuration

    literal = 'str://"' + "".join(parts).replace('"', '\\"') + '"'
    options: Any = {"variables": {}, "environment": {}, "working_directory": Path("/nonexistent")}
    try:
        load_configuration([literal], configuration_name=None, **options)
    except InvalidFile as error:
        assert error.problems
    judge_files([literal], **options)


@pytest.mark.slow
def test_a_wrong_value_in_a_very_large_file_is_explained_all_the_same(tmp_path: Path) -> None:
    member = '<member name="m{}" type="int32"/>'
    many = "".join(member.format(at) for at in range(60_000))
    data = f'<dds><types><struct name="S">{many}\n<member name="x" type="int32" key="perhaps"/></struct></types></dds>'
    first = check(write(tmp_path / "a.xml", data.encode()))[0]
    assert (first.line, first.found) == (2, "perhaps")
    assert first.allowed.startswith("true, false")


NAMED = (
    '<dds><queuing_service name="{service}"><domain_participant name="{participant}"><domain_id>1</domain_id>'
    '<shared_subscriber name="{subscriber}"><session_settings><session name="{session}"/></session_settings>'
    '<shared_reader_queue name="{queue}" session="{session}"><topic_name>{topic}</topic_name>'
    "<type_name>{type}</type_name></shared_reader_queue></shared_subscriber></domain_participant></queuing_service></dds>"
)
NAMES = {
    "service": "A",
    "participant": "P",
    "subscriber": "S",
    "session": "s",
    "queue": "Q",
    "topic": "T",
    "type": "DDS::Octets",
}


@pytest.mark.parametrize("bounded", [each for each in NAMES if each != "type"])
@pytest.mark.parametrize("length", [256, 65_000, 1_000_000])
def test_a_name_has_a_bound(bounded: str, length: int, tmp_path: Path) -> None:
    (first, *_) = check(write(tmp_path / "a.xml", NAMED.format(**{**NAMES, bounded: "N" * length}).encode()))
    assert first.line == 1
    assert first.allowed == "at most 65536 characters" if length > 65_536 else "255" in str(first.allowed)
    assert len(str(first)) < 2000, "it is named, and not repeated whole"


def test_names_of_a_letter_are_valid(tmp_path: Path) -> None:
    assert check(write(tmp_path / "a.xml", NAMED.format(**NAMES).encode())) == []
