"""Types as canonical XML: fully qualified names back into modules, constants already evaluated, includes read in."""

from __future__ import annotations

from lxml import etree
from lxml.etree import _Element

from qsctl.config.sample_types.type_model import (
    Alias,
    Bitmask,
    Enumeration,
    Primitive,
    Struct,
    StructMember,
    TypeShape,
    Union,
)
from qsctl.config.sample_types.types import TypeLibrary


def types_element(library: TypeLibrary) -> _Element:
    """Return `<types>` with every definition of the library, in its modules and in its order."""
    root = etree.Element("types")
    modules: dict[str, _Element] = {"": root}
    for name, definition in library.definitions.items():
        module, _, local = name.rpartition("::")
        element = _definition(definition, local)
        _module(modules, module).append(element)
    return root


def _module(modules: dict[str, _Element], name: str) -> _Element:
    found = modules.get(name)
    if found is None:
        outer, _, local = name.rpartition("::")
        found = etree.SubElement(_module(modules, outer), "module", {"name": local})
        modules[name] = found
    return found


def _definition(definition: Struct | Union | Enumeration | Bitmask | Alias, name: str) -> _Element:
    match definition:
        case Struct():
            attributes = {"name": name, "extensibility": str(definition.extensibility)}
            if definition.base:
                attributes["baseType"] = f"::{definition.base}"
            if definition.hashed_ids:
                attributes["autoid"] = "hash"
            element = etree.Element("struct", attributes)
            element.extend([_member(member) for member in definition.members])
        case Union():
            element = etree.Element("union", {"name": name, "extensibility": str(definition.extensibility)})
            key = {"key": "true"} if definition.key else {}
            etree.SubElement(element, "discriminator", {**_shape(definition.discriminator), **key})
            for case in definition.cases:
                inside = etree.SubElement(element, "case")
                labels = [str(label).lower() if isinstance(label, bool) else str(label) for label in case.labels]
                for label in [*labels, *(["default"] if case.is_default else [])]:
                    etree.SubElement(inside, "caseDiscriminator", {"value": label})
                inside.append(_member(case.member))
        case Enumeration(values=values):
            element = etree.Element("enum", {"name": name, "bitBound": str(definition.bit_bound)})
            for literal, number in values:
                etree.SubElement(element, "enumerator", {"name": literal, "value": str(number)})
        case Bitmask(flags=flags):
            element = etree.Element("bitmask", {"name": name, "bitBound": str(definition.bit_bound)})
            for flag, position in flags:
                etree.SubElement(element, "flag", {"name": flag, "position": str(position)})
        case Alias(shape=shape):
            element = etree.Element("typedef", {"name": name, **_shape(shape)})
    return element


def _member(member: StructMember) -> _Element:
    attributes = {"name": member.name, **_shape(member.shape)}
    for key, value in (("key", member.key), ("optional", member.optional), ("mustUnderstand", member.must_understand)):
        if value:
            attributes[key] = "true"
    if member.id is not None:
        attributes["id"] = str(member.id)
    if member.default is not None:
        attributes["default"] = member.default
    return etree.Element("member", attributes)


def _shape(shape: TypeShape) -> dict[str, str]:
    if isinstance(shape.base, Primitive):
        attributes = {"type": "byte" if shape.base is Primitive.OCTET else str(shape.base)}
    else:
        attributes = {"type": "nonBasic", "nonBasicTypeName": f"::{shape.base}"}
    if shape.base in {Primitive.STRING, Primitive.WSTRING}:
        attributes["stringMaxLength"] = str(shape.string_bound)
    if shape.sequence_bound is not None:
        attributes["sequenceMaxLength"] = str(shape.sequence_bound)
    if shape.dimensions:
        attributes["arrayDimensions"] = ",".join(str(size) for size in shape.dimensions)
    return attributes
