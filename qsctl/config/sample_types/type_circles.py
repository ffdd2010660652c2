"""Types that hold themselves by value, through members, bases or aliases: their samples would be endless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qsctl.config.sample_types.type_model import Alias, Definition, Primitive, Struct, StructMember, Union


def find_circle(definitions: Mapping[str, Definition]) -> list[str]:
    """Return the names of one circle, the first one again at the end; empty where there is none.

    Sequences and optional members end a circle: they may be empty. Walks, without recursion: types nest as deep as
    their author likes.
    """
    done: set[str] = set()
    for start in definitions:
        path: dict[str, None] = {}
        pending = [(start, False)]
        while pending:
            name, leaving = pending.pop()
            if leaving:
                path.pop(name)
                done.add(name)
                continue
            if name in path:
                names = list(path)
                return [*names[names.index(name) :], name]
            if name in done or name not in definitions:
                continue
            path[name] = None
            pending.append((name, True))
            pending.extend((inner, False) for inner in _held_by_value(definitions[name]))
    return []


def _held_by_value(definition: Definition) -> Iterator[str]:
    match definition:
        case Struct(members=members, base=base):
            if base:
                yield base
            yield from (str(member.shape.base) for member in members if _by_value(member))
        case Union(cases=cases):
            yield from (str(case.member.shape.base) for case in cases if _by_value(case.member))
        case Alias(shape=shape) if shape.sequence_bound is None:
            yield str(shape.base)
        case _:
            return


def _by_value(member: StructMember) -> bool:
    return member.shape.sequence_bound is None and not member.optional and not isinstance(member.shape.base, Primitive)
