"""Types in XML: names, bounds and constants; samples between JSON and CDR."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.config.load import load_configuration
from qsctl.config.sample_types._type_constants import ConstantForm, evaluate
from qsctl.config.sample_types.type_file import read_type_file
from qsctl.config.sample_types.type_model import BUILTIN_TYPES, Primitive, Struct, TypeShape
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.errors import InvalidInput, NotFound, QsctlError, Refused
from qsctl.shipped import shipped


@pytest.fixture(scope="module")
def shop() -> TypeLibrary:
    loaded = load_configuration(
        [shipped("fixtures/config/field/types.xml")],
        configuration_name=None, variables={}, environment={}, working_directory=Path(),
    )  # fmt: skip
    return loaded.configuration.types


ORDER = {
    "number": 7,
    "color": "GREEN",
    "flags": ["GIFT"],
    "text": "two lines",
    "lines": [1, 2, 3],
    "picture": "00ff",
    "digest": "01020304",
    "grid": [[1, 2, 3], [4, 5, 6]],
    "price": {"discriminator": "RED", "cents": 1999},
    "weight": 1.5,
    "count": 4,
    "paid": True,
    "letter": "x",
}


def test_a_sample_of_every_kind_of_member_comes_back(shop: TypeLibrary) -> None:
    octets = shop.json_to_cdr("shop::Order", ORDER)
    assert octets[:4] == b"\x00\x01\x00\x00"
    assert shop.cdr_to_json("shop::Order", octets) == ORDER


def test_an_optional_member_may_be_left_out_and_a_default_fills_in(shop: TypeLibrary) -> None:
    given_sample = {key: value for key, value in ORDER.items() if key not in {"weight", "count"}}
    back = shop.cdr_to_json("shop::Order", shop.json_to_cdr("shop::Order", given_sample))
    assert back == {**given_sample, "count": 3}


def test_the_default_case_of_a_union_needs_its_discriminator(shop: TypeLibrary) -> None:
    words = {"discriminator": "GREEN", "words": "much"}
    assert shop.cdr_to_json("shop::Price", shop.json_to_cdr("shop::Price", words)) == words
    with pytest.raises(InvalidInput, match="discriminator"):
        shop.json_to_cdr("shop::Price", {"words": "much"})
    with pytest.raises(InvalidInput, match="discriminator"):
        shop.json_to_cdr("shop::Price", {"discriminator": "RED", "words": "much"})


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("number", -1, "number is -1"),
        ("number", 2**32, "number is 4294967296"),
        ("number", "7", "number is '7'"),
        ("color", "PINK", "color is 'PINK'"),
        ("flags", ["NONE"], r"flags is \['NONE'\]"),
        ("text", "x" * 65, "text is"),
        ("text", "a\0b", "text is"),
        ("lines", list(range(18)), "lines is"),
        ("lines", [2**31], r"lines\[0\] is"),
        ("picture", "xyz", "picture is"),
        ("digest", "0102", "digest is"),
        ("grid", [[1, 2], [3, 4]], r"grid\[0\] is"),
        ("price", {"euros": 3}, "price is"),
        ("price", 3, "price is 3"),
        ("weight", "heavy", "weight is"),
        ("paid", 1, "paid is 1"),
        ("letter", "é", "letter is"),
        ("colour", "RED", "colour is"),
        ("text", None, "text is None"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_the_member_s_name(
    shop: TypeLibrary, member: str, value: object, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as raised:
        shop.json_to_cdr("shop::Order", {**ORDER, member: value})
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("type_name", "value", "octets"),
    [
        ("DDS::String", {"value": "hello"}, b"\0\1\0\0\6\0\0\0hello\0"),
        ("DDS::Octets", {"value": "0001ff"}, b"\0\1\0\0\3\0\0\0\0\1\xff"),
        ("DDS::KeyedString", {"key": "k", "value": "v"}, b"\0\1\0\0\2\0\0\0k\0\0\0\2\0\0\0v\0"),
        ("DDS::KeyedOctets", {"key": "k", "value": "ff"}, b"\0\1\0\0\2\0\0\0k\0\0\0\1\0\0\0\xff"),
    ],
)
def test_builtin_types_have_the_known_encoding(type_name: str, value: object, octets: bytes) -> None:
    library = TypeLibrary()
    assert library.json_to_cdr(type_name, value) == octets
    assert library.cdr_to_json(type_name, octets) == value


def test_a_plain_text_is_a_sample_of_dds_string_and_octets_may_be_numbers() -> None:
    library = TypeLibrary()
    assert library.cdr_to_json("DDS::String", library.json_to_cdr("DDS::String", "x")) == {"value": "x"}
    assert library.json_to_cdr("::DDS::Octets", [1, 2]) == library.json_to_cdr("DDS::Octets", "0102")


def test_an_unknown_type_names_those_that_there_are(shop: TypeLibrary) -> None:
    with pytest.raises(NotFound, match="no type Orders") as raised:
        shop.json_to_cdr("Orders", {})
    assert "shop::Order" in raised.value.remedy
    assert shop.type_names() == ["shop::Head", "shop::Price", "shop::Order", *BUILTIN_TYPES]


def test_what_the_library_cannot_represent_is_refused() -> None:
    wide = TypeLibrary({"W": Struct("W", (), base="V"), "V": Struct("V", ())})
    assert wide.json_to_cdr("W", {}) == b"\0\1\0\0"
    from qsctl.config.sample_types.type_model import StructMember

    for primitive in (Primitive.WSTRING, Primitive.FLOAT128):
        library = TypeLibrary({"X": Struct("X", (StructMember("m", TypeShape(primitive)),))})
        with pytest.raises(Refused, match=str(primitive)):
            library.json_to_cdr("X", {"m": "x"})
    endless = TypeLibrary({"L": Struct("L", (StructMember("m", TypeShape("L", sequence_bound=-1)),))})
    with pytest.raises(Refused, match="refers to itself"):
        endless.json_to_cdr("L", {"m": []})


def test_members_with_names_of_python_and_of_the_library_work() -> None:
    from qsctl.config.sample_types.type_model import StructMember

    words = ("class", "value", "discriminator", "_x", "serialize", "None")
    library = TypeLibrary({"K": Struct("K", tuple(StructMember(word, TypeShape(Primitive.INT32)) for word in words))})
    sample = {word: at for at, word in enumerate(words)}
    assert library.cdr_to_json("K", library.json_to_cdr("K", sample)) == sample


@given(st.binary(max_size=60))
def test_any_octets_are_a_sample_or_refused(octets: bytes) -> None:
    library = _SHOP
    for name in ("shop::Order", "shop::Price", "DDS::String", "DDS::KeyedOctets"):
        for data in (octets, b"\0\1\0\0" + octets):
            try:
                library.cdr_to_json(name, data)
            except QsctlError as error:
                assert error.message


_SHOP = load_configuration(
    [shipped("fixtures/config/field/types.xml")],
    configuration_name=None, variables={}, environment={}, working_directory=Path(),
).configuration.types  # fmt: skip


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ('<struct name="A"><member name="m" type="nonBasic"/></struct>', "a nonBasic type needs"),
        ('<struct name="A"><member name="m" type="B"/></struct>', "there is no type B"),
        ('<struct name="A"/><struct name="A"/>', "the name A is given to two types"),
        ('<struct name="A"><member name="m" type="long"/><member name="m" type="long"/></struct>', "the member m occurs twice"),
        ('<struct name="A" baseType="A"/>', "the type A contains itself"),
        ('<typedef name="A" type="B"/><typedef name="B" type="A"/>', "the type A contains itself"),
        ('<enum name="E"><enumerator name="X"/><enumerator name="X"/></enum>', "X or its number occurs twice"),
        ('<bitmask name="B" bitBound="8"><flag name="X" position="8"/></bitmask>', "the bit does not fit"),
        ('<const name="C" type="octet" value="256"/>', "the constant C has a wrong value"),
        ('<const name="C" type="long" value="D + 1"/>', "value is not a whole number"),
        ('<struct name="A"><member name="m" type="string" stringMaxLength="0"/></struct>', "the bound is out of range"),
        ('<enum name="E"><enumerator name="X"/></enum><struct name="A" baseType="E"/>', "A cannot be based on E"),
        ('<include file="/etc/types.xml"/>', "only a file below the directory"),
        ('<include file="../types.xml"/>', "only a file below the directory"),
        ('<include file="http://127.0.0.1/types.xml"/>', "only a file below the directory"),
        ('<include file="none.xml"/>', "there is no such file"),
        ('<union name="U"><discriminator type="long"/><case><caseDiscriminator value="1"/><caseDiscriminator value="1"/><member name="m" type="long"/></case></union>', "the case 1 occurs twice"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_reported_with_its_place(types: str, message: str, text: Any, errors: Any) -> None:
    found = errors(text(dds=f"<types>{types}</types>").xml())
    assert [problem.message[: len(message)] for problem in found] == [message]


def test_an_included_file_below_the_directory_is_read_once(tmp_path: Path, text: Any) -> None:
    (tmp_path / "sub").mkdir()
    inside = '<types><struct name="Inner"><member name="x" type="int8"/></struct><include file="more.xml"/></types>'
    (tmp_path / "sub" / "types.xml").write_text(inside)
    (tmp_path / "sub" / "more.xml").write_text('<dds><types><struct name="More" baseType="m::Inner"/></types></dds>')
    dds = '<types><module name="m"><include file="sub/types.xml"/><include file="sub/types.xml"/></module></types>'
    path = tmp_path / "a.xml"
    path.write_text(text(dds=dds).xml())
    loaded = load_configuration(
        [path], configuration_name=None, variables={}, environment={}, working_directory=tmp_path
    )
    assert list(loaded.configuration.types.definitions) == ["m::Inner", "m::More"]


def test_a_symbolic_link_does_not_lead_an_include_out_of_the_directory(tmp_path: Path, text: Any) -> None:
    outside = tmp_path / "outside.xml"
    outside.write_text("<types/>")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.xml").symlink_to(outside)
    (inside / "a.xml").write_text(text(dds='<types><include file="link.xml"/></types>').xml())
    from qsctl.config.load import judge_files

    problems = judge_files([inside / "a.xml"], variables={}, environment={}, working_directory=tmp_path).problems
    assert [problem.message for problem in problems] == ["the included file lies elsewhere"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [("7", 7), ("0x10", 16), ("-1", -1), ("2 * (3 + N)", 16), ("1 << 4 | 1", 17), ("~0 & 0xff", 255), ("7 / 2", 3), ("a::N % 3", 2)],
)  # fmt: skip
def test_constants_are_expressions_of_whole_numbers(expression: str, value: int) -> None:
    assert evaluate(expression, {"N": 5, "a::N": 8}) == value


@pytest.mark.parametrize(
    "expression", ["", "x", "1/0", "2 ** 9", "f(1)", "1 << 999", "'a'", "True", "(" * 200, "9" * 300, "[1][0]", "1.5"]
)
def test_anything_else_is_no_constant(expression: str) -> None:
    with pytest.raises(ConstantForm):
        evaluate(expression, {})


def test_a_type_of_a_file_is_a_codec_for_programs(tmp_path: Path) -> None:
    path = tmp_path / "types.xml"
    path.write_text('<types><struct name="Order"><member name="number" type="int32"/></struct></types>')
    codec = read_type_file(path).codec("Order")
    assert codec.encode({"number": 7}) == bytes.fromhex("00010000 07000000")
    assert codec.decode(codec.encode({"number": -1})) == {"number": -1}
    with pytest.raises(InvalidInput, match="number"):
        codec.encode({"number": "seven"})
    with pytest.raises(NotFound, match="Ordre"):
        read_type_file(path).codec("Ordre")


def test_a_file_without_types_is_no_type_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.xml"
    path.write_text("<dds/>")
    with pytest.raises(InvalidInput, match="no <types>"):
        read_type_file(path)
