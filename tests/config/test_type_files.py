"""Type files: nothing in them runs, what the library cannot have is refused in words, and bounds hold."""

# ruff: noqa: E501

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from qsctl.config.sample_types.type_file import read_type_file
from qsctl.config.sample_types.type_model import Bitmask, Enumeration, Primitive, Struct, StructMember, TypeShape, Union
from qsctl.config.sample_types.type_names import python_names
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.declared.problems import InvalidFile
from qsctl.errors import InvalidInput, QsctlError, Refused

CANARY = "qsctl_test_canary"
CODE = f"a:__import__('sys').modules.update({CANARY}=1)or'''"
NAMED = (
    '<struct name="S"><member name="{}" type="long"/></struct>',
    '<struct name="{}"><member name="m" type="long"/></struct>',
    '<bitmask name="B"><flag name="{}"/></bitmask><struct name="S"><member name="m" type="B"/></struct>',
    '<enum name="E"><enumerator name="{}"/></enum><struct name="S"><member name="m" type="E"/></struct>',
    '<module name="{}"><struct name="S"/></module>',
    '<union name="U"><discriminator type="long"/><case><caseDiscriminator value="1"/><member name="{}" type="long"/></case></union>',
)  # fmt: skip


def _file(tmp_path: Path, types: str, *, root: str = "<types>{}</types>") -> Path:
    path = tmp_path / "types.xml"
    path.write_text(root.format(types))
    return path


def _message(path: Path) -> str:
    with pytest.raises(InvalidFile) as raised:
        read_type_file(path)
    return "\n".join(problem.message for problem in raised.value.problems)


@pytest.mark.parametrize("root", ["<types>{}</types>", "<dds><types>{}</types></dds>"])
@pytest.mark.parametrize("named", NAMED)
def test_a_name_that_is_code_is_refused_and_does_not_run(tmp_path: Path, named: str, root: str) -> None:
    path = _file(tmp_path, named.format(CODE.replace("&", "&amp;")), root=root)
    with pytest.raises(InvalidFile, match="the attribute name of"):
        for name in (library := read_type_file(path)).definitions:
            library.codec(name)
    assert CANARY not in sys.modules


def test_a_name_that_is_code_does_not_run_in_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "inner.xml").write_text(f"<types>{NAMED[0].format(CODE)}</types>")
    assert "the attribute name of <member>" in _message(_file(tmp_path, '<include file="inner.xml"/>'))
    assert CANARY not in sys.modules


@pytest.mark.parametrize(
    "definition",
    [
        Struct("S", (StructMember(CODE, TypeShape(Primitive.INT32)),)),
        Struct(CODE, ()),
        Bitmask("S", ((CODE, 1),)),
        Union("S", TypeShape(Primitive.INT32), ()),
        Enumeration("S", ((CODE, 1),)),
        Struct("S", (StructMember("x" * 256, TypeShape(Primitive.INT32)),)),
        Struct("S", (StructMember("é", TypeShape(Primitive.INT32)),)),
    ],
)
def test_no_class_is_made_of_a_name_that_is_no_identifier(definition: Struct | Bitmask | Union | Enumeration) -> None:
    holder = Struct("Holder", (StructMember("held", TypeShape(definition.name)),))
    with pytest.raises(Refused):
        TypeLibrary({definition.name: definition, "Holder": holder}).class_of("Holder")
    assert CANARY not in sys.modules


def test_only_the_types_of_a_whole_configuration_count(tmp_path: Path) -> None:
    dds = '<dds><queuing_service name="S"><domain_participant>$(NOBODY)</domain_participant></queuing_service><types>{}</types></dds>'
    assert read_type_file(_file(tmp_path, '<struct name="S"/>', root=dds)).definitions
    assert "nonsense" in _message(_file(tmp_path, "<nonsense/>", root=dds))


def test_a_type_file_passes_the_schema(tmp_path: Path) -> None:
    assert "mumber" in _message(_file(tmp_path, '<struct name="S"><mumber name="m" type="long"/></struct>'))


def test_two_names_never_share_a_python_name() -> None:
    names = ["class", "m_class", "m_m_class", "_x", "m__x", "__init__", "None", "serialize", "mro", "plain"]
    found = python_names(names, TypeLibrary)
    assert len(set(found.values())) == len(names)
    assert found["plain"] == "plain"
    assert found["m_class"] == "m_class"
    assert all(name.isidentifier() and not name.startswith("_") for name in found.values())


def test_names_that_python_and_the_library_keep_come_back_whole(tmp_path: Path) -> None:
    words = ("class", "m_class", "_x", "__x", "__init__", "None", "mro", "self", "serialize", "value", "MISSING")
    members = "".join(f'<member name="{word}" type="long"/>' for word in words)
    more = '<member name="m__x" type="long"/><member name="m_m_class" type="long"/>'
    flags = "".join(f'<flag name="{word}"/>' for word in ("as_mask", "None", "_x"))
    literals = "".join(f'<enumerator name="{word}"/>' for word in ("mro", "_x_", "__y__", "name", "value", "None"))
    types = (
        f'<struct name="class">{members}</struct><struct name="Derived" baseType="class">{more}'
        f'<member name="bits" type="B"/><member name="word" type="E"/></struct>'
        f'<bitmask name="B" bitBound="64">{flags}</bitmask><enum name="E">{literals}</enum>'
    )
    codec = read_type_file(_file(tmp_path, types)).codec("Derived")
    for literal in ("mro", "_x_", "__y__", "name", "value", "None"):
        sample = dict.fromkeys((*words, "m__x", "m_m_class"), 7) | {"bits": ["None", "_x"], "word": literal}
        assert codec.decode(codec.encode(sample)) == sample


def test_a_hashed_member_id_is_that_of_the_name_in_the_file(tmp_path: Path) -> None:
    types = (
        '<struct name="S" extensibility="mutable" autoid="hash"><member name="class" type="octet"/></struct>'
        '<struct name="T" extensibility="mutable"><member name="other" type="octet" hashid="class"/></struct>'
    )
    library = read_type_file(_file(tmp_path, types))
    octets = library.json_to_cdr("S", {"class": 7})
    # XTypes 7.3.1.2.1.1: MD5 of `class` begins with a2f2ed4f.
    assert bytes.fromhex("a2f2ed0f") == octets[8:12] == library.json_to_cdr("T", {"other": 7})[8:12]


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ('<struct name="A"><member name="m" type="long"/></struct><struct name="B" baseType="A"><member name="m" type="long"/></struct>', "the member m is in B and in its base"),
        ('<struct name="A"><member name="a" type="long" id="1"/><member name="b" type="long" id="1"/></struct>', "the members a and b of A have one id"),
        ('<struct name="A"><member name="a" type="long" id="0x10000000"/></struct>', "id is out of range"),
        ('<typedef name="L" type="long"/><struct name="A" baseType="L"/>', "A cannot be based on L"),
        ('<union name="U"><discriminator type="float32"/><case><caseDiscriminator value="1"/><member name="a" type="long"/></case></union>', "the discriminator of U cannot select a case"),
        ('<union name="U"><discriminator type="octet"/><case><caseDiscriminator value="256"/><member name="a" type="long"/></case></union>', "a case of U can never be selected"),
        ('<enum name="E"><enumerator name="X"/></enum><union name="U"><discriminator type="E"/><case><caseDiscriminator value="7"/><member name="a" type="long"/></case></union>', "a case of U can never be selected"),
        ('<union name="U"><discriminator type="long"/><case><caseDiscriminator value="default"/><member name="a" type="long"/></case><case><caseDiscriminator value="default"/><member name="b" type="long"/></case></union>', "U has several default cases"),
        ('<union name="U"><discriminator type="long"/><case><caseDiscriminator value="1"/><member name="a" type="long"/></case><case><caseDiscriminator value="2"/><member name="a" type="long"/></case></union>', "the member a occurs 2 times in U"),
        ('<union name="U"><discriminator type="long"/><case><caseDiscriminator value="1"/><member name="discriminator" type="long"/></case></union>', "a member of the union U is called discriminator"),
        ('<enum name="E" bitBound="8"><enumerator name="X" value="256"/></enum>', "the number of X does not fit the enumeration"),
        ('<enum name="E" bitBound="64"><enumerator name="X"/></enum>', "bitBound is out of range"),
        ('<bitmask name="B"><flag name="X"/><flag name="X"/></bitmask>', "the flag X occurs twice"),
        ('<struct name="A"><member name="m" type="long" arrayDimensions="2147483647"/></struct>', "the array m of A has too many elements\nevery sample of A would be too large"),
        ('<struct name="A"><member name="m" type="long" arrayDimensions="' + ",".join(["1"] * 17) + '"/></struct>', "the array has too many dimensions"),
        ('<struct name="A"><member name="m" type="octet" arrayDimensions="40000000"/></struct>', "every sample of A would be too large"),
        ('<struct name="A"><member name="m" type="long" arrayDimensions="1000"/></struct><struct name="B"><member name="m" type="A" arrayDimensions="1000,100"/></struct>', "every sample of B would be too large"),
        (f'<struct name="{"x" * 256}"/>', "the attribute name of <struct> has a value that is not allowed"),
        ("".join(f'<struct name="S{at}"><member name="m" type="S{at + 1}"/></struct>' for at in range(100)) + '<struct name="S100"><member name="m" type="long"/></struct>', "the types of S0 are nested too deeply"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_is_one_error(tmp_path: Path, types: str, message: str) -> None:
    said = _message(_file(tmp_path, types)).splitlines()
    assert len(said) == message.count("\n") + 1
    assert all(line.startswith(start) for line, start in zip(said, message.splitlines(), strict=True))


def test_types_nest_as_deep_as_is_allowed(tmp_path: Path) -> None:
    types = "".join(f'<struct name="S{at}"><member name="m" type="S{at + 1}"/></struct>' for at in range(99))
    codec = read_type_file(_file(tmp_path, types + '<struct name="S99"><member name="m" type="long"/></struct>')).codec(
        "S0"
    )
    sample: object = 7
    for _ in range(100):
        sample = {"m": sample}
    assert codec.decode(codec.encode(sample)) == sample


@pytest.mark.parametrize(
    "types",
    [
        '<struct name="N"/><struct name="A"><member name="m" type="N" sequenceMaxLength="-1"/></struct>',
        '<struct name="N"/><struct name="A"><member name="m" type="N" arrayDimensions="9"/></struct>',
        '<struct name="N"/><struct name="A"><member name="m" type="N" optional="true"/></struct>',
        '<union name="A" extensibility="mutable"><discriminator type="long"/><case><caseDiscriminator value="1"/><member name="a" type="long"/></case></union>',
        '<union name="A"><discriminator type="long"/><case><caseDiscriminator value="default"/><member name="a" type="long"/></case></union>',
    ],
)  # fmt: skip
def test_what_the_library_would_get_wrong_is_refused(tmp_path: Path, types: str) -> None:
    with pytest.raises(Refused, match="represent") as raised:
        read_type_file(_file(tmp_path, types)).codec("A")
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("types", "sample"),
    [
        ('<struct name="A"><member name="m" type="long" sequenceMaxLength="100000"/></struct>', {"m": [1, 2]}),
        ('<enum name="E"><enumerator name="X" value="-7"/></enum><struct name="A"><member name="m" type="E"/></struct>', {"m": "X"}),
        ('<enum name="E"><enumerator name="X" value="-7"/></enum><union name="A"><discriminator type="E"/><case><caseDiscriminator value="X"/><member name="a" type="long"/></case></union>', {"discriminator": "X", "a": 1}),
        ('<bitmask name="B" bitBound="64"><flag name="X" position="63"/></bitmask><struct name="A"><member name="m" type="B"/></struct>', {"m": ["X"]}),
        ('<union name="A"><discriminator type="boolean"/><case><caseDiscriminator value="1"/><member name="a" type="long"/></case><case><caseDiscriminator value="0"/><member name="b" type="long"/></case></union>', {"discriminator": False, "b": 1}),
        ('<typedef name="D" type="short"/><union name="A"><discriminator type="D"/><case><caseDiscriminator value="1"/><member name="a" type="long"/></case></union>', {"discriminator": 1, "a": 1}),
    ],
)  # fmt: skip
def test_what_the_library_does_not_know_by_itself_comes_back(tmp_path: Path, types: str, sample: object) -> None:
    codec = read_type_file(_file(tmp_path, types)).codec("A")
    assert codec.decode(codec.encode(sample)) == sample


def test_a_struct_of_many_unions_is_made_in_no_time(tmp_path: Path) -> None:
    case = '<case><caseDiscriminator value="{0}"/><member name="m{0}" type="long"/></case>'
    union = '<union name="U"><discriminator type="long"/>' + "".join(case.format(at) for at in range(5)) + "</union>"
    members = "".join(f'<member name="u{at}" type="U"/>' for at in range(40))
    codec = read_type_file(_file(tmp_path, f'{union}<struct name="A">{members}</struct>')).codec("A")
    sample = {f"u{at}": {"discriminator": at % 5, f"m{at % 5}": at} for at in range(40)}
    assert codec.decode(codec.encode(sample)) == sample


def test_constants_of_a_large_file_are_looked_up_not_searched(tmp_path: Path) -> None:
    count = 3_000
    constants = "".join(f'<const name="C{at}" type="long" value="{at} + 1"/>' for at in range(count))
    literals = "".join(f'<enumerator name="L{at}"/>' for at in range(count))
    members = "".join(f'<member name="m{at}" type="long" sequenceMaxLength="C{at}"/>' for at in range(count))
    types = f'{constants}<enum name="E">{literals}</enum><struct name="S">{members}</struct>'
    definitions = read_type_file(_file(tmp_path, types)).definitions
    assert isinstance(definitions["S"], Struct)
    assert definitions["S"].members[-1].shape.sequence_bound == count


def test_a_file_of_nonsense_gives_a_bounded_number_of_problems(tmp_path: Path) -> None:
    members = "".join(f'<member name="m{at}" type="Unknown{at}"/>' for at in range(5_000))
    with pytest.raises(InvalidFile) as raised:
        read_type_file(_file(tmp_path, f'<struct name="S">{members}</struct>'))
    assert len(raised.value.problems) == 200


@pytest.mark.parametrize("types", ['<enum name="T"><enumerator name="X"/></enum>', '<bitmask name="T"><flag name="X"/></bitmask>', '<typedef name="T" type="long"/>'])  # fmt: skip
def test_samples_are_of_a_struct_or_a_union(tmp_path: Path, types: str) -> None:
    library = read_type_file(_file(tmp_path, types + '<struct name="S"/>'))
    for call in (
        library.codec,
        lambda name: library.json_to_cdr(name, "X"),
        lambda name: library.cdr_to_json(name, b""),
    ):
        with pytest.raises(Refused, match="no queue holds samples of it") as raised:
            call("T")
        assert "S" in raised.value.remedy


def test_another_name_for_a_struct_is_a_type_of_samples(tmp_path: Path) -> None:
    types = '<typedef name="T" type="U"/><typedef name="U" type="S"/><struct name="S"><member name="m" type="int8"/></struct>'
    codec = read_type_file(_file(tmp_path, types)).codec("T")
    assert codec.decode(codec.encode({"m": -1})) == {"m": -1}


@pytest.mark.parametrize("octets", ["00010000 05", "00010000 63000000"])
def test_octets_that_end_early_or_mean_nothing_are_refused(tmp_path: Path, octets: str) -> None:
    types = (
        '<enum name="E"><enumerator name="X"/></enum>'
        '<struct name="S"><member name="e" type="E"/><member name="o" type="octet" arrayDimensions="8"/></struct>'
    )
    codec = read_type_file(_file(tmp_path, types)).codec("S")
    with pytest.raises(InvalidInput, match="are not a sample of S"):
        codec.decode(bytes.fromhex(octets))
    with pytest.raises(QsctlError):
        codec.decode(codec.encode({"e": "X", "o": "00" * 8})[:-3])
