"""Types of queues as a program without qsctl declares them: what its configuration has in `<types>`, and a builtin."""

from dataclasses import dataclass, field

from cyclonedds.idl import IdlEnum, IdlStruct
from cyclonedds.idl.annotations import appendable, final, mutable
from cyclonedds.idl.types import bounded_str, byte, float64, int32, sequence


@dataclass
@final
class Octets(IdlStruct, typename="DDS.Octets"):
    value: sequence[byte] = b""


@dataclass
@final
class String(IdlStruct, typename="DDS.String"):
    value: str = ""


class Side(IdlEnum, typename="market.Side", default="BUY"):
    BUY = 0
    SELL = 1


@dataclass
@final
class Price(IdlStruct, typename="market.Price"):
    amount: float64 = 0.0
    currency: bounded_str[3] = ""


@dataclass
@final
class FinalOrder(IdlStruct, typename="market.FinalOrder"):
    number: int32 = 0
    side: Side = Side.BUY
    price: Price = field(default_factory=Price)
    notes: sequence[str] = field(default_factory=list)


@dataclass
@appendable
class AppendableOrder(IdlStruct, typename="market.AppendableOrder"):
    number: int32 = 0
    side: Side = Side.BUY
    price: Price = field(default_factory=Price)
    notes: sequence[str] = field(default_factory=list)


@dataclass
@mutable
class MutableOrder(IdlStruct, typename="market.MutableOrder"):
    number: int32 = 0
    side: Side = Side.BUY
    price: Price = field(default_factory=Price)
    notes: sequence[str] = field(default_factory=list)


TYPES = """
<types>
  <module name="market">
    <enum name="Side"><enumerator name="BUY" value="0"/><enumerator name="SELL" value="1"/></enum>
    <struct name="Price" extensibility="final">
      <member name="amount" type="float64"/>
      <member name="currency" type="string" stringMaxLength="3"/>
    </struct>
    {structs}
  </module>
</types>
""".format(
    structs="".join(
        f"""<struct name="{extensibility.title()}Order" extensibility="{extensibility}">
      <member name="number" type="int32"/>
      <member name="side" type="nonBasic" nonBasicTypeName="Side"/>
      <member name="price" type="nonBasic" nonBasicTypeName="Price"/>
      <member name="notes" type="string" sequenceMaxLength="-1" stringMaxLength="-1"/>
    </struct>"""
        for extensibility in ("final", "appendable", "mutable")
    )
)
