"""The data of messages under conditions on HL7 v2 fields: one of three answers, whatever the data is."""

from __future__ import annotations

from qsctl.dumps.hl7_fields import FieldMatch, match_field, parse_condition

DICTIONARY = (
    b"MSH|^~\\&|", b"\rPID|", b"\nOBX|", b"|", b"^", b"~", b"&", b"\\T\\", b"\\X0D\\", b"\\.br\\", b"\\",
    b"\x0b", b"\x1c\r", b"\xff",
    b"4711", b"\r\n", b"MSH$*~\\&$", b"MSH", b"\\Zx\\", b"\\C2842\\", b"\\M24\\", b"\xe9",
)  # fmt: skip
SHORT_COUNT = 300
_CONDITIONS = tuple(
    map(
        parse_condition,
        (
            "PID-3=4711",
            "PID-3.1.1~4",
            "PID-3!=4711",
            "PID-5=",
            "MSH-9.2=A01",
            "MSH-2=*",
            "OBX-5~x",
            "PID-3=*",
            "MSH-1=?",
        ),
    )
)


def one_input(data: bytes) -> None:
    found = [match_field(data, each) for each in _CONDITIONS]
    assert all(isinstance(each, FieldMatch) for each in found)
    is_message = data.strip(b"\x0b\x1c \t\r\n").startswith(b"MSH")
    assert is_message or set(found) == {FieldMatch.NOT_HL7}
