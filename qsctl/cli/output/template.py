"""`-o '{{ field }}'`: a line of text for each row, made by Jinja.

Decides the abilities of a template. It sees the fields of one row and Jinja's own filters, and can neither call into
this program nor change anything; a field that does not exist is an error, not an empty text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Row
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment

_REMEDY = (
    "Write fields in double braces, as in '{{ queue_name }} {{ current_message_count }}'; --format-help lists them."
)


def line_maker(template: str) -> Callable[[Row], str]:
    r"""Return the function that makes a row's text; `\t` and `\n` of the template mean a tab and a line feed.

    Raises:
        UsageError: it is not a template.
    """
    from jinja2 import TemplateError

    text = template.replace("\\t", "\t").replace("\\n", "\n")
    try:
        made = _environment().from_string(text)
    except TemplateError as error:
        raise UsageError(f"-o {template!r} is not a template: {error}", remedy=_REMEDY) from None

    def line(row: Row) -> str:
        # Errors of a template appear only when it is filled in; a filter may raise any of Python's exceptions.
        try:
            return made.render(row)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise UsageError(f"-o {template!r} cannot be filled in: {error}", remedy=_REMEDY) from None

    return line


def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # The lines are for terminals and scripts, so that nothing is escaped for HTML.
    return ImmutableSandboxedEnvironment(autoescape=False, undefined=StrictUndefined, keep_trailing_newline=False)
