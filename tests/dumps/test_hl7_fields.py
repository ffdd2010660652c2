"""Conditions on fields of HL7 v2: what each finds, in messages as senders write them and in what is none."""

from __future__ import annotations

import sys

import pytest

from qsctl.dumps.hl7_fields import FieldMatch, check_reader, match_field, parse_condition
from qsctl.errors import Unavailable, UsageError

MESSAGE = (
    b"\x0bMSH|^~\\&|ADT|WARD|||20261122||ADT^A01|1|P|2.3\r"
    b"PID|1||123^^^MRN~456^^^X&Y&Z||Doe^Jane\\T\\Co\r"
    b"OBX|1|TX|||negative\rOBX|2|TX|||weakly positive\r\x1c\r"
)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("PID-3=123", True), ("PID-3=456", True), ("PID-3=4*", True), ("PID-3=45", False), ("PID-3~45", True),
        ("PID-3=123^^^MRN", True), ("PID-3.4=MRN", True), ("PID.3.4=MRN", True), ("PID-3.4.2=Y", True),
        ("PID-3.4.9=Y", False), ("PID-3.9=", True), ("PID-3!=123", False), ("PID-3!=9", True), ("PID-3=", False),
        ("PID-3!=", True), ("PID-9=", True), ("PID-300=1", False), ("PID-5.2=Jane&Co", True), ("PID-5=Doe", True),
        ("OBX-5~positive", True), ("OBX-5=positive", False), ("OBX-2=TX", True), ("ZZZ-1=", True), ("ZZZ-1=1", False),
        ("MSH-1=|", True), ("MSH-2=^~\\&", True), ("MSH-9.2=A01", True), ("MSH-9=ADT^A01", True), ("MSH-3=ADT", True),
    ],
)  # fmt: skip
def test_a_condition_finds_fields_repetitions_and_components(condition: str, holds: bool) -> None:
    pytest.importorskip("hl7")
    expected = FieldMatch.HOLDS if holds else FieldMatch.DIFFERS
    assert match_field(MESSAGE, parse_condition(condition)) is expected


@pytest.mark.parametrize("ends", [b"\r", b"\n", b"\r\n", b"\r\r\n"])
def test_segments_end_as_files_and_editors_end_them(ends: bytes) -> None:
    pytest.importorskip("hl7")
    data = MESSAGE.replace(b"\r", ends)
    assert match_field(data, parse_condition("OBX-5~positive")) is FieldMatch.HOLDS


def test_other_separators_and_encodings_are_those_of_the_message() -> None:
    pytest.importorskip("hl7")
    data = "MSH$*~\\&$ADT\rPID$1$$4711*a$$M\u00fcller*Jos\u00e9\r"
    for encoding in ("utf-8", "latin-1"):
        assert match_field(data.encode(encoding), parse_condition("PID-5.1=M\u00fcller")) is FieldMatch.HOLDS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"MSH",
        b"MSH|^~\\",
        b"MSH|||||\rPID|1",
        b"PID|1||2",
        b"{}",
        b"\0" * 99,
        b"MSH&\xa1\x81\xa3\x1c\rA",
        b"MSHabcde|1",
    ],
)
def test_what_is_no_message_fits_no_condition(data: bytes) -> None:
    pytest.importorskip("hl7")
    for text in ("PID-3=2", "PID-3!=2", "PID-3="):
        assert match_field(data, parse_condition(text)) is FieldMatch.NOT_HL7


def test_escapes_are_replaced_and_unknown_ones_kept_without_a_word_on_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("hl7")
    data = MESSAGE.replace(b"weakly", b"\\X41\\\\F\\\\M24\\\\Zx\\\\E\\")
    for text in (r"OBX-5~A|\M24\\Zx\\", "OBX-5=*positive"):
        assert match_field(data, parse_condition(text)) is FieldMatch.HOLDS, text
    assert capfd.readouterr() == ("", "")


def test_a_segment_of_separators_alone_costs_no_memory() -> None:
    pytest.importorskip("hl7")
    data = b"MSH|^~\\&|x\rPID" + b"|" * 10_000_000
    assert match_field(data, parse_condition("PID-3!=1")) is FieldMatch.NOT_HL7


@pytest.mark.parametrize(
    "text", ["", "PID", "PID=1", "PID-0=1", "pid-3=1", "PID-3", "PID-3>1", "PID-3.0=1", "PID-1234=1"]
)
def test_other_texts_are_no_conditions(text: str) -> None:
    with pytest.raises(UsageError, match="--hl7"):
        parse_condition(text)


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hl7", None)
    with pytest.raises(Unavailable, match="hl7") as caught:
        check_reader()
    assert "pip install" in caught.value.remedy
