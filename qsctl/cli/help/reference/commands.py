"""The page of commands: usage, description, arguments, options and examples of each, from the command line itself."""

from __future__ import annotations

from qsctl.cli.help._command_tree import CommandHelp, Parameter, commands
from qsctl.cli.help.reference.markdown import text_in_markdown

_EVERY = "`qsctl help COMMAND` shows one of them. Every command has these options, which are not repeated below:"


def page() -> str:
    """Return all commands, grouped by their panels in `qsctl --help`."""
    shared = next(each for each in commands()).parameters
    parts = [_EVERY, "\n".join(_bullet(each) for each in shared if each.panel == "Output")]
    panels: dict[str, list[CommandHelp]] = {}
    for command in commands():
        panels.setdefault(command.panel or "About the installation", []).append(command)
    for panel, listed in panels.items():
        parts.append(f"## {panel}")
        parts += [section(each, level=3, with_output=False) for each in listed]
    return "\n\n".join(parts)


def section(command: CommandHelp, *, level: int, with_output: bool = True) -> str:
    """Return one command under a heading of this level, with or without the options that all commands share."""
    parts = [f"{'#' * level} qsctl {command.name}", paragraphs(command.text), f"```sh\n{command.usage}\n```"]
    arguments = [each for each in command.parameters if each.is_argument]
    options = [each for each in command.parameters if not each.is_argument and each.panel != "Output"]
    output = [each for each in command.parameters if each.panel == "Output" and with_output]
    for heading, listed in (("Arguments", arguments), ("Options", options), ("Output", output)):
        if listed:
            parts += [f"**{heading}**", "\n".join(_bullet(each) for each in listed)]
    if command.examples:
        lines = (f"{line}  # {meaning}" if meaning else line for line, meaning in command.examples)
        parts += ["**Examples**", "```sh\n" + "\n".join(lines) + "\n```"]
    return "\n\n".join(parts)


def paragraphs(text: str) -> str:
    """Return a help text with each paragraph on one line, since help is indented like its source."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _bullet(each: Parameter) -> str:
    head = f"`{each.name}{' ' * bool(each.metavar)}{each.metavar}`"
    notes = (
        "Required."
        if each.is_required
        else f"Default: {text_in_markdown(each.default.strip('()'))}."
        if each.default
        else ""
    )
    variable = f"Environment: `{each.variable}`." if each.variable else ""
    return " ".join(part for part in (f"- {head}:", text_in_markdown(each.help), notes, variable) if part)
