"""The page of metrics: every metric of a service's endpoint, with names, kinds and labels as in a scrape."""

from __future__ import annotations

import inspect
import typing

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown
from qsctl.core.events import Event
from qsctl.service.process.metrics import documented

_HOW = """\
`qsctl serve --metrics-port PORT` answers `GET /metrics` on the loopback, or on `--metrics-address`. Figures are at
most a second old. Counters begin with the process. The names, labels and kinds below are promised as the fields of
the output are (`qsctl help reference-output`); further metrics, labels' values and events may be added."""


def page() -> str:
    """Return the table of metrics, then the events that one of them counts."""
    rows = [
        (code(name), kind, ", ".join(code(label) for label in labels.split(", ") if label), text_in_markdown(meaning))
        for name, kind, labels, meaning in documented()
    ]
    events = [
        (code(each.__struct_config__.tag), text_in_markdown((inspect.getdoc(each) or "").split("\n\n")[0]))
        for each in typing.get_args(Event)
    ]
    counted = (
        f"## Events that are counted\n\nValues of the label `event`.\n\n{table(('event', 'what happened'), events)}"
    )
    return "\n\n".join((_HOW, table(("metric", "kind", "labels", "what it is"), rows), counted))
