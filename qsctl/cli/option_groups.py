"""Groups of options, each declared once as a dataclass, and added to a command by one parameter of that class.

A command with a parameter `service: ServiceOptions` has the options of that class's fields on its command line, in the
place of the parameter, and is called with the object. What the options mean together, as a connection or a set of
assignments, is returned by methods of the class.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast


class OptionGroup:
    """Base class of groups: dataclasses whose fields are annotated as options of Typer and have defaults.

    A class whose options are not its fields overrides `parameters`, and is constructed from their values.
    """

    @classmethod
    def parameters(cls) -> tuple[inspect.Parameter, ...]:
        """Return the group's options as parameters of a command."""
        hints = typing.get_type_hints(cls, include_extras=True)
        return tuple(
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in dataclasses.fields(cast("Any", cls))
        )


def command_line_parameters(function: Callable[..., object], hints: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Return the parameters of a command as Typer reads them, with each group in place of its fields' options.

    Args:
        function: the command.
        hints: the annotations of its parameters, evaluated.
    """
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if is_group(hints[name]):
            parameters += hints[name].parameters()
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    return parameters


def grouped(groups: Mapping[str, type[OptionGroup]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command's function: the parsed values, those of each group in its object."""
    arguments = dict(values)
    for name, group in groups.items():
        arguments[name] = group(**{each.name: arguments.pop(each.name) for each in group.parameters()})
    return arguments


def is_group(annotation: object) -> bool:
    """Return whether a parameter of this annotation is a group of options."""
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)
