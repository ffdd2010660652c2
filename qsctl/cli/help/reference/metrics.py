"""Every metric of a service: what its endpoint answers, with names, kinds and labels as a scrape has them."""

from __future__ import annotations

import inspect
import typing

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown
from qsctl.core.events import Event
from qsctl.service.metrics import Figures, families

_HOW = """\
`qsctl serve --metrics-port PORT` answers `GET /metrics` on the loopback, or on `--metrics-address`. Figures are at
most a second old. Counters begin with the process. The names, labels and kinds below are promised as the fields of
the output are (`qsctl help reference-output`); further metrics, labels' values and events may be added."""

_ANY = {"Queue": 0}
_EXAMPLE = Figures({("received", "Queue"): 0}, _ANY, _ANY, 0, 0, 0, _ANY, _ANY, _ANY, _ANY, _ANY, _ANY, _ANY, _ANY)


def page() -> str:
    """Return the metrics, then the events that one of them counts."""
    rows = []
    for family in families([_EXAMPLE]):
        sample = family.samples[0]
        labels = ", ".join(code(label) for label in sample.labels)
        rows.append((code(sample.name), family.type, labels, text_in_markdown(family.documentation)))
    events = [
        (code(each.__struct_config__.tag), text_in_markdown((inspect.getdoc(each) or "").split("\n\n")[0]))
        for each in typing.get_args(Event)
    ]
    counted = (
        f"## Events that are counted\n\nValues of the label `event`.\n\n{table(('event', 'what happened'), events)}"
    )
    return "\n\n".join((_HOW, table(("metric", "kind", "labels", "what it is"), rows), counted))
