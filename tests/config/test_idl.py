"""Types in IDL are those of the same definitions in XML; what is wrong is named with its line."""

from pathlib import Path

import pytest

from qsctl.config.sample_types.type_file import read_type_file
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.declared.problems import InvalidFile

IDL = """
#ifndef SHOP
#define SHOP
#include "parts.idl"
module shop { module core {
  const long MOST = 2 * 4 + 1;
  enum Side { BUY, @value(5) SELL };
  @bit_bound(16) bitmask Marks { FIRST, @position(3) LATE };
  typedef sequence<double, MOST> Prices;
  /* one with
     everything */
  struct Base { @key long number; };
  @mutable
  struct Order : Base {
    unsigned long long big; //@key
    @optional string<8> text;
    sequence<string<128>> notes, others[2][MOST];
    wstring wide; octet raw; long double exact; unsigned short port;
    parts::Part part;
    shop::core::Side side; Prices prices; Marks marks; @id(77) char letter;
  };
  union Choice switch (Side) { case BUY: long bought; case SELL: default: string sold; };
}; };
struct Later; //@top-level false
struct Plain { boolean yes; }; //@Extensibility FINAL_EXTENSIBILITY
#endif
"""
XML = """<types>
<include file="parts.xml"/>
<module name="shop"><module name="core">
  <const name="MOST" type="int32" value="2*4+1"/>
  <enum name="Side"><enumerator name="BUY"/><enumerator name="SELL" value="5"/></enum>
  <bitmask name="Marks" bitBound="16"><flag name="FIRST"/><flag name="LATE" position="3"/></bitmask>
  <typedef name="Prices" type="float64" sequenceMaxLength="MOST"/>
  <struct name="Base"><member name="number" type="int32" key="true"/></struct>
  <struct name="Order" baseType="Base" extensibility="mutable">
    <member name="big" type="uint64" key="true"/>
    <member name="text" type="string" stringMaxLength="8" optional="true"/>
    <member name="notes" type="string" stringMaxLength="128" sequenceMaxLength="-1"/>
    <member name="others" type="string" stringMaxLength="128" sequenceMaxLength="-1" arrayDimensions="2,9"/>
    <member name="wide" type="wstring" stringMaxLength="-1"/><member name="raw" type="octet"/>
    <member name="exact" type="float128"/><member name="port" type="uint16"/>
    <member name="part" type="nonBasic" nonBasicTypeName="parts::Part"/>
    <member name="side" type="nonBasic" nonBasicTypeName="Side"/>
    <member name="prices" type="nonBasic" nonBasicTypeName="Prices"/>
    <member name="marks" type="nonBasic" nonBasicTypeName="Marks"/><member name="letter" type="char8" id="77"/>
  </struct>
  <union name="Choice"><discriminator type="nonBasic" nonBasicTypeName="Side"/>
    <case><caseDiscriminator value="BUY"/><member name="bought" type="int32"/></case>
    <case><caseDiscriminator value="SELL"/><caseDiscriminator value="default"/>
      <member name="sold" type="string" stringMaxLength="-1"/></case>
  </union>
</module></module>
<struct name="Plain" extensibility="final"><member name="yes" type="boolean"/></struct>
</types>"""


def read(directory: Path, name: str, text: str) -> TypeLibrary:
    (directory / name).write_text(text, encoding="utf-8")
    return read_type_file(directory / name)


def test_types_of_idl_are_those_of_the_same_xml(tmp_path: Path) -> None:
    (tmp_path / "parts.idl").write_text("module parts { @final struct Part { float x; }; };")
    (tmp_path / "parts.xml").write_text(
        '<types><module name="parts"><struct name="Part" extensibility="final"><member name="x" type="float32"/>'
        "</struct></module></types>"
    )
    from_idl, from_xml = read(tmp_path, "types.idl", IDL), read(tmp_path, "types.xml", XML)
    assert from_idl.definitions == from_xml.definitions
    assert from_idl.json_to_cdr("Plain", {"yes": True}) == from_xml.json_to_cdr("Plain", {"yes": True})


def test_configuration_includes_idl(tmp_path: Path) -> None:
    (tmp_path / "plain.idl").write_text("struct Plain { long number; };")
    library = read(tmp_path, "all.xml", '<dds><types><include file="plain.idl"/></types></dds>')
    assert library.type_names()[0] == "Plain"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("struct A {\n  long a\n};", 3, "';'"),
        ("struct A {\n  Unknown a;\n};", 2, "there is no type Unknown"),
        ("\nstruct A { string<-4> a; };", 2, "is not allowed"),
        ("#define MOST 4\nstruct A { long a; };", 1, "preprocessor directive is not supported"),
        ("struct A { sequence<sequence<long>> a; };", 1, "a sequence of sequences"),
        ("interface A {};", 1, "module, struct, enum"),
        ("struct A { long a; }; $", 1, "this is not IDL"),
        ("struct A { A a; };", 1, "contains itself"),
        ("module a {" * 70, 1, "nested too deeply"),
        ("struct A { map<long, long> a; };", 1, "a primitive, a string"),
        ("struct A { long a;", 1, "a type"),
        ("", 0, "empty"),
        ("@a(((((", 1, "')'"),
        ('struct A { @default("<&\\"") long class; } ;\nstruct A { long b; };', 2, "is given to two types"),
    ],
)
def test_wrong_idl_is_refused_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(InvalidFile) as raised:
        read(tmp_path, "wrong.idl", text)
    problem = raised.value.problems[0]
    assert problem.line == line, problem
    assert words in str(problem)
