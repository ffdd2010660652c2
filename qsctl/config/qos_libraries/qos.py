"""QoS libraries and inheritance: `base_name`, profiles based on profiles, `is_default_qos` [QS Table 3.1].

Decides: what a QoS element is once everything that it starts from is laid under it. Libraries of all loaded files are
merged; of two profiles of one name the one loaded later counts. Libraries that come with a DDS product (`Builtin…`) are
tolerated: the reference is kept and noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from lxml.etree import _Element

from qsctl.config.files.document import text_of
from qsctl.config.qos_libraries.qos_tree import QosNode, merge, read_qos
from qsctl.declared.problems import Problem, Severity, did_you_mean, line_of, problem_at
from qsctl.declared.values import ValueForm, boolean

ENTITY_TAGS: Final = (
    "participant_qos",
    "publisher_qos",
    "subscriber_qos",
    "topic_qos",
    "datawriter_qos",
    "datareader_qos",
)
_BUILTIN_PREFIX: Final = "Builtin"


def entity_tag(tag: str) -> str:
    """Return the kind of entity of a QoS tag: `update_datareader_qos` is set by `datareader_qos` of profiles."""
    return tag.removeprefix("update_").removeprefix("redistribution_")


@dataclass(eq=False)
class QosLibraries:
    """All QoS libraries of a configuration, and what was resolved from them so far."""

    profiles: dict[str, _Element] = field(default_factory=dict)
    """`Library::Profile` to its element."""
    named: dict[tuple[str, str], _Element] = field(default_factory=dict)
    """(`Library::Name` or `Library::Profile::Name`, tag) to a QoS element that has a name of its own."""
    default_profile: str = ""
    default_elements: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    _resolved: dict[tuple[str, str], QosNode | None] = field(default_factory=dict)
    _reported: set[tuple[int, str]] = field(default_factory=set)

    def add(self, library: _Element) -> None:
        """Add the profiles of one `<qos_library>`; later ones replace earlier ones of the same name."""
        name = library.get("name", "")
        for child in library:
            if child.tag == "qos_profile":
                full = f"{name}::{child.get('name', '')}"
                self.profiles[full] = child
                if _is_default(child):
                    self.default_profile = full
                self._add_named(full, child)
        self._add_named(name, library)

    def _add_named(self, prefix: str, parent: _Element) -> None:
        for child in parent:
            own_name = child.get("name")
            if child.tag in ENTITY_TAGS and own_name:
                self.named[(f"{prefix}::{own_name}", str(child.tag))] = child
                if _is_default(child):
                    self.default_elements[str(child.tag)] = f"{prefix}::{own_name}"

    def without_findings(self) -> QosLibraries:
        """Return the same libraries without the problems and notes that were found so far."""
        return replace(self, problems=[], notes=[], _reported=set())

    def resolve(self, element: _Element) -> QosNode:
        """Return a QoS element of the service, merged over all its bases."""
        node = read_qos(element)
        tag = entity_tag(str(element.tag))
        for reference in reversed(bases_of(element)):
            node = self._over_base(node, element, reference, tag, library="")
        return node

    def default_for(self, tag: str) -> QosNode | None:
        """Return the QoS of the profile with `is_default_qos`, for an entity without a QoS element; None if none has
        it.
        """
        kind = entity_tag(tag)
        reference = self.default_elements.get(kind) or self.default_profile
        if not reference:
            return None
        node = self._evaluate(reference, kind)
        if node is None:
            return None
        return replace(merge(node, QosNode(tag), f"{reference}, the default profile"), tag=tag)

    def _over_base(self, node: QosNode, element: _Element, reference: str, tag: str, library: str) -> QosNode:
        if is_builtin(reference):
            self._note_builtin(element, reference)
            return replace(node, attributes={"base_name": reference, **node.attributes})
        full = self._full_name(reference, tag, library)
        if full is None:
            self._report_unknown(element, reference, tag)
            return node
        base = self._evaluate(full, tag)
        return node if base is None else merge(replace(base, tag=node.tag), node, full)

    def _full_name(self, reference: str, tag: str, library: str) -> str | None:
        candidates = [f"{library}::{reference}"] if library else []
        candidates.append(reference)
        for name in candidates:
            if name in self.profiles or (name, tag) in self.named:
                return name
        if "::" not in reference and not library:
            same = [name for name in self.profiles if name.rpartition("::")[2] == reference]
            if len(same) == 1:
                return same[0]
        return None

    def _evaluate(self, reference: str, tag: str) -> QosNode | None:
        """Return the QoS of a profile or a named element for a kind of entity; None where it has none.

        A chain of bases is followed without recursion.
        """
        wanted = (reference, tag)
        under_way: dict[tuple[str, str], None] = {}
        pending = [wanted]
        while pending:
            key = pending[-1]
            if key in self._resolved:
                pending.pop()
                continue
            element, references, library = self._parts(key)
            full_names = [(each, self._full_name(each, tag, library)) for each in references]
            missing = [(name, tag) for _, name in full_names if name and (name, tag) not in self._resolved]
            if key not in under_way:
                under_way[key] = None
                for each in missing:
                    if each in under_way:
                        chain = list(under_way)
                        self._report_cycle(element, chain[chain.index(each) :], each)
                        self._resolved.setdefault(each, None)
                fresh = [each for each in missing if each not in self._resolved]
                if fresh:
                    pending.extend(reversed(fresh))
                    continue
            self._resolved[key] = self._combine(key, element, references, library)
            under_way.pop(key, None)
            pending.pop()
        return self._resolved[wanted]

    def _parts(self, key: tuple[str, str]) -> tuple[_Element, list[str], str]:
        """Return the element of a key, the names of its bases, and the library in which short names are looked up."""
        reference, tag = key
        library = reference.split("::", 1)[0]
        named = self.named.get(key)
        if named is not None:
            return named, bases_of(named), library
        profile = self.profiles[reference]
        own = next((child for child in profile if child.tag == tag), None)
        own_bases = bases_of(own) if own is not None else []
        return (profile if own is None else own), own_bases or bases_of(profile), library

    def _combine(self, key: tuple[str, str], element: _Element, references: list[str], library: str) -> QosNode | None:
        tag = key[1]
        node = read_qos(element) if element.tag == tag else QosNode(tag)
        silent = element.tag != tag
        for reference in reversed(references):
            before = node
            node = self._over_base(node, element, reference, tag, library)
            silent = silent and node is before
        return None if silent else node

    def _note_builtin(self, element: _Element, reference: str) -> None:
        if self._once(element, reference):
            self.notes.append(
                problem_at(
                    element,
                    f"{reference} belongs to a library that comes with another product: kept, and not resolved",
                    severity=Severity.NOTE,
                    found=reference,
                )
            )

    def _report_unknown(self, element: _Element, reference: str, tag: str) -> None:
        if self._once(element, reference):
            known = [*self.profiles, *(name for name, kind in self.named if kind == tag)]
            self.problems.append(
                problem_at(
                    element,
                    f"there is no QoS profile {reference}",
                    found=f'base_name="{reference}"',
                    allowed=", ".join(known[:20]) or "no profile is defined",
                    suggestion=did_you_mean(reference, known),
                )
            )

    def _report_cycle(self, element: _Element, chain: list[tuple[str, str]], back_to: tuple[str, str]) -> None:
        names = [name for name, _ in chain] + [back_to[0]]
        if self._once(element, "cycle"):
            self.problems.append(
                problem_at(
                    element,
                    "QoS profiles are based on each other in a circle",
                    found=" → ".join(names[:10]),
                    allowed="a chain that ends",
                    suggestion=f"Remove one base_name of {', '.join(sorted(set(names))[:10])}.",
                )
            )

    def _once(self, element: _Element, word: str) -> bool:
        mark = (line_of(element), word)
        if mark in self._reported:
            return False
        self._reported.add(mark)
        return True

    def check(self) -> None:
        """Resolve every profile for every kind of entity, so that broken ones are reported even if unused."""
        for name, profile in self.profiles.items():
            kinds = {str(child.tag) for child in profile if child.tag in ENTITY_TAGS} or {"datareader_qos"}
            for tag in sorted(kinds):
                self._evaluate(name, tag)
        for name, tag in list(self.named):
            self._evaluate(name, tag)


def bases_of(element: _Element) -> list[str]:
    """Return the names of an element's bases: `base_name`, then those in `<base_name>`; later ones override."""
    references = [" ".join((element.get("base_name") or "").split())]
    references.extend(text_of(each) for each in element.findall("base_name/element"))
    return [reference for reference in references if reference]


def is_builtin(reference: str) -> bool:
    """Return whether a reference is to a library that comes with a DDS product."""
    return reference.startswith(_BUILTIN_PREFIX) and "::" in reference


def _is_default(element: _Element) -> bool:
    try:
        return boolean(element.get("is_default_qos", "false").strip())
    except ValueForm:
        return False
