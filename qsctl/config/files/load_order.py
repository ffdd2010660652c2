"""The sources of a service's configuration, in the order they are loaded [QS 3.1].

First three with QoS profiles: the product's, those of NDDS_QOS_PROFILES, the user's. Then three for the service: the
product's, the user's, and the files that the command line names. Later ones override. A source is a file or a literal
`str://"<dds>…"`; one text may contain several, separated by semicolons.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from qsctl.config.files.document import FILE_LIMITS, Document, DocumentLimits, parse_document, read_file
from qsctl.declared.problems import shown

LITERAL_PREFIX: Final = "str://"
FILE_PREFIX: Final = "file://"
PROFILES_VARIABLE: Final = "NDDS_QOS_PROFILES"
HOME_VARIABLE: Final = "NDDSHOME"


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """A file, or XML given literally. `named`: the user named it, so it must exist."""

    name: str
    path: Path | None = None
    literal: str = ""
    named: bool = True

    def document(self, working_directory: Path, limits: DocumentLimits = FILE_LIMITS) -> Document:
        """Return the parsed source.

        Raises:
            InvalidFile: it cannot be read or is not well-formed.
        """
        if self.path is None:
            return parse_document(self.literal.encode("utf-8", "replace"), self.name, limits, working_directory)
        return parse_document(read_file(self.path, self.name, limits), self.name, limits, self.path.parent)


def sources_in_order(
    sources: Sequence[str | Path | ConfigurationSource],
    *,
    environment: Mapping[str, str],
    working_directory: Path,
    default_files: bool = True,
) -> list[ConfigurationSource]:
    """Return the sources to load, in order: the default ones, which may be missing, and those that the user named."""
    ordered: list[ConfigurationSource] = []
    home = environment.get(HOME_VARIABLE, "")
    if default_files:
        if home:
            ordered.append(_unnamed(Path(home) / "resource" / "xml" / "NDDS_QOS_PROFILES.xml"))
        ordered.extend(split_sources(environment.get(PROFILES_VARIABLE, ""), working_directory))
        ordered.append(_unnamed(working_directory / "USER_QOS_PROFILES.xml"))
        if home:
            ordered.append(_unnamed(Path(home) / "resource" / "xml" / "RTI_QUEUING_SERVICE.xml"))
        ordered.append(_unnamed(working_directory / "USER_QUEUING_SERVICE.xml"))
    for source in sources:
        if isinstance(source, ConfigurationSource):
            ordered.append(source)
        elif isinstance(source, Path):
            ordered.append(_file(str(source), working_directory))
        else:
            ordered.extend(split_sources(source, working_directory))
    kept = [source for source in _once(ordered) if source.named or (source.path and source.path.is_file())]
    literals = itertools.count(1)
    return [source if source.path else replace(source, name=f"{LITERAL_PREFIX}{next(literals)}") for source in kept]


def _once(sources: Sequence[ConfigurationSource]) -> Iterator[ConfigurationSource]:
    """Yield each source once; a file that is named and also a default one is loaded at its last place."""
    seen: set[Path] = set()
    kept: list[ConfigurationSource] = []
    for source in reversed(sources):
        if source.path is not None:
            place = source.path.absolute()
            if place in seen:
                continue
            seen.add(place)
        kept.append(source)
    return reversed(kept)


_SOURCE = re.compile(
    r"""\s*str://\s*"(?:[^"\\]|\\.|"(?!\s*(?:;|\Z)))*"?|[^;]+""",
    re.DOTALL,
)
"""A literal ends at the quote that a semicolon or the end follows; anything else ends at a semicolon."""


def split_sources(text: str, working_directory: Path) -> list[ConfigurationSource]:
    """Return the sources of `a.xml;b.xml;str://"<dds>…</dds>"`; semicolons inside a literal's quotes are its own."""
    parts = _SOURCE.findall(text)
    return [_source(part.strip(), working_directory) for part in parts if part.strip()]


def _source(part: str, working_directory: Path) -> ConfigurationSource:
    if part.startswith(LITERAL_PREFIX):
        return ConfigurationSource(LITERAL_PREFIX, literal=unquote_literal(part))
    return _file(part.removeprefix(FILE_PREFIX), working_directory)


def _file(name: str, working_directory: Path) -> ConfigurationSource:
    return ConfigurationSource(shown(name), path=working_directory / name)


def _unnamed(path: Path) -> ConfigurationSource:
    return ConfigurationSource(str(path), path=path, named=False)


def unquote_literal(text: str) -> str:
    r"""Return the XML of `str://"<dds>…</dds>"`; quotes in it are written `\"` [QS 5.4.1] or left as they are."""
    body = text.strip().removeprefix(LITERAL_PREFIX).strip()
    if body.startswith('"'):
        body = body[1:]
        if body.endswith('"') and not body.endswith('\\"'):
            body = body[:-1]
    return body.replace('\\"', '"').replace("\\\\", "\\")
