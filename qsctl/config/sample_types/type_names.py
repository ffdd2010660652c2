"""Names of an XML type file as names of Python classes: identifiers or nothing.

The DDS library builds classes whose source it assembles from the fields' names and runs (`dataclasses`), so no text
reaches it that is not an identifier. A name that Python or the library keeps for itself (`class`, `None`, `__init__`,
`serialize`, `mro`) is given to the library with a prefix; XML, JSON and the wire keep the name as it is.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Collection, Iterable
from typing import Final

from qsctl.errors import Refused

NAME_CHARACTERS_MAX: Final = 255
"""Of a type, member, enumerator, flag or constant."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PREFIX: Final = "m_"


def checked_identifier(name: str) -> str:
    """Return the name, which is safe to become part of a class.

    Raises:
        Refused: it is not an identifier of at most 255 ASCII characters.
    """
    if len(name) > NAME_CHARACTERS_MAX or not _IDENTIFIER.fullmatch(name):
        raise Refused(
            f"{name[:60]!r} is not a name of a type or member",
            remedy=f"Use a letter or _, then letters, digits and _: at most {NAME_CHARACTERS_MAX} characters.",
        )
    return name


def python_names(names: Iterable[str], *bases: type, taken: Collection[str] = ()) -> dict[str, str]:
    """Return the Python name of each name: itself, or one with a prefix where Python or a base class has it already.

    Two names never share one: of `class` and `m_class` the first becomes `m_m_class`. `taken` are the Python names that
    a base type's members have.

    Raises:
        Refused: a name is not an identifier.
    """
    given = [checked_identifier(name) for name in names]
    reserved = {name for name in given if name in taken or _is_reserved(name, bases)}
    used = {*taken, *(name for name in given if name not in reserved)}
    found: dict[str, str] = {}
    for name in given:
        chosen = name
        if name in reserved:
            chosen = _PREFIX + name
            while chosen in used:
                chosen = _PREFIX + chosen
            used.add(chosen)
        found[name] = chosen
    return found


def _is_reserved(name: str, bases: tuple[type, ...]) -> bool:
    # `hasattr` of a class also finds what its metaclass has, such as `mro`: a field of that name gets it as default.
    return name.startswith("_") or keyword.iskeyword(name) or any(hasattr(base, name) for base in bases)


def hashed_id(text: str) -> int:
    """Return the member id that XTypes derives from a name (7.3.1.2.1.1)."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "little") & 0x0FFF_FFFF
