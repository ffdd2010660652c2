"""Dead letters are read by the type of the queue that they come from [QS 2.12]."""

from __future__ import annotations

from pathlib import Path

from qsctl.cli.output.payloads import ContentReader
from qsctl.config.sample_types.type_file import read_type_file

TYPES = """<types>
  <struct name="Order"><member name="id" type="int32"/></struct>
  <struct name="Bill"><member name="sum" type="int32"/><member name="to" type="string" stringMaxLength="8"/></struct>
</types>
"""


def reader(tmp_path: Path) -> ContentReader:
    file = tmp_path / "types.xml"
    file.write_text(TYPES, encoding="utf-8")
    return ContentReader(read_type_file(file), origins={"Order@S": "Order", "Bill@S": "Bill", "Note@S": "Unknown"})


def test_a_dead_letter_is_read_by_the_type_of_its_queue(tmp_path: Path) -> None:
    read = reader(tmp_path)
    assert read.types is not None
    order, bill = read.types.json_to_cdr("Order", {"id": 7}), read.types.json_to_cdr("Bill", {"sum": 7, "to": "Eve"})
    assert read.for_origin("Order@S").read(order) == ({"id": 7}, "json")
    assert read.for_origin("Bill@S").read(bill) == ({"sum": 7, "to": "Eve"}, "json")


def test_a_dead_letter_of_a_queue_without_a_known_type_is_shown_as_it_is(tmp_path: Path) -> None:
    read = reader(tmp_path)
    assert read.types is not None
    octets = read.types.json_to_cdr("Order", {"id": 7})
    for queue in ("Note@S", "Gone@S"):
        assert read.for_origin(queue).read(octets)[1] == "base64"
