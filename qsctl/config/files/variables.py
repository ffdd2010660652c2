"""`$(NAME)` in texts and attributes becomes the variable's value [QS 3.4].

The command line comes first, then the environment; a name that neither has is an error with its place. Values are put
into the tree, never into the text of the file: no value can add an element. They are not expanded again, so a `$(` that
one brings is refused: the configuration could not be written as a file that has the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from lxml.etree import _Element

from qsctl.config.files.document import Document
from qsctl.declared.problems import Problem, did_you_mean, problem_at

_REFERENCE = re.compile(r"\$\(\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\)")
_UNFINISHED = re.compile(r"\$\(")
_EXPANDED_CHARACTERS_MAX: Final = 1024 * 1024
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class _Expansion:
    def __init__(self, document: Document, variables: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.document = document
        self.variables = variables
        self.environment = environment
        self.problems: list[Problem] = []
        self.expanded_characters = 0

    def expand(self, element: _Element, text: str) -> str:
        notes: list[str] = []
        known_problems = len(self.problems)

        def value_of(reference: re.Match[str]) -> str:
            name = reference[1]
            if name in self.variables:
                value, origin = self.variables[name], "the command line"
            elif name in self.environment:
                value, origin = self.environment[name], "the environment"
            else:
                known = [*self.variables, *(key for key in self.environment if len(key) > 2)]
                self.problems.append(
                    problem_at(
                        element,
                        f"the variable {name} has no value",
                        found=reference[0],
                        allowed=f"a value from --var {name}=… or from the environment",
                        suggestion=did_you_mean(name, known),
                    )
                )
                return reference[0]
            if _ILLEGAL.search(value):
                self.problems.append(problem_at(element, f"the value of {name} has characters that XML does not allow"))
                return ""
            self.expanded_characters += len(value)
            if self.expanded_characters > _EXPANDED_CHARACTERS_MAX:
                self.problems.append(problem_at(element, "the values of variables are too long together"))
                return ""
            notes.append(f"$({name}) from {origin}")
            return value

        result = _REFERENCE.sub(value_of, text)
        if _UNFINISHED.search(_REFERENCE.sub("", text)):
            self.problems.append(
                problem_at(
                    element,
                    "this is not a variable",
                    found=text,
                    allowed="$(NAME): a letter or _, then letters, digits, _ and .",
                )
            )
        if "$(" in result and len(self.problems) == known_problems:
            self.problems.append(
                problem_at(
                    element,
                    "the value of a variable contains a variable: values are not expanded again",
                    found=result,
                    allowed="values without $(",
                    suggestion="Give the variable its whole value.",
                )
            )
        if notes:
            self.document.substituted[element] = ", ".join(dict.fromkeys(notes))
        return result


def refuse_variables(root: _Element) -> list[Problem]:
    """Return a problem for each text with `$(`: in the XML of a command nothing is expanded."""
    return [
        problem_at(
            element,
            "variables are not expanded in the XML of a command",
            found=text,
            allowed="the value itself",
            suggestion="Write the value: variables are for configuration files, which `qsctl serve` loads.",
        )
        for element in root.iter()
        for text in (element.text or "", *(str(value) for value in element.attrib.values()))
        if "$(" in text
    ]


def substitute(document: Document, variables: Mapping[str, str], environment: Mapping[str, str]) -> list[Problem]:
    """Replace every variable in the document, in place.

    Returns:
        A problem for each name without a value and each `$(` that names nothing.
    """
    expansion = _Expansion(document, variables, environment)
    for element in document.root.iter():
        if element.text and "$(" in element.text:
            element.text = expansion.expand(element, element.text)
        for key, value in element.attrib.items():
            if "$(" in value:
                element.set(key, expansion.expand(element, str(value)))
        if expansion.expanded_characters > _EXPANDED_CHARACTERS_MAX:
            break
    return expansion.problems


def without_consequences(found: Iterable[Problem], unresolved: Iterable[Problem]) -> list[Problem]:
    """Return the problems found after a substitution, less those of a text that still holds its `$(NAME)`."""
    explained = {(problem.file, problem.line, problem.path) for problem in unresolved}
    return [problem for problem in found if (problem.file, problem.line, problem.path) not in explained]
