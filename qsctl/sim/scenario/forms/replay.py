"""The XML elements of a replay: `<replay>` and its `<queue>` elements; `elements.py` puts them into the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qsctl.config.form import SettingPlace, settings_in
from qsctl.config.tables.queue import QUEUE
from qsctl.declared.values import DURATION, Value
from qsctl.sim.scenario.forms.form import REPLAY as REPLAYS
from qsctl.sim.scenario.forms.form import Attribute, Child, Form
from qsctl.sim.scenario.forms.values import CONSUMERS, NAME, REAL, TEXT, choice, integer
from qsctl.sim.scenario.parts.replay import AnotherRecording, Replay, ReplayedQueue

_HOLDER: Final = "settings."


def _value_of(place: SettingPlace) -> Value:
    """Return the kind of value that a setting of a service file has in a scenario."""
    value = place.setting.value
    if value is DURATION:
        return DURATION
    return choice(type(place.default)) if value.low is None else integer(0, unlimited=True)


def _varied() -> Iterator[Attribute]:
    """Yield the attributes of a queue's settings: those of the settings table, and the limit set by a reader's QoS."""
    for place in settings_in(QUEUE):
        if place.setting.replay:
            yield Attribute(place.setting.replay, f"{_HOLDER}{place.field}", _value_of(place))
    yield Attribute("max-waiting", f"{_HOLDER}limits.waiting_count_max", integer(0, unlimited=True))


_VARIED: Final = tuple(_varied())
VARIED: Final = tuple(each.field.removeprefix(_HOLDER) for each in _VARIED)
"""The fields of a queue's settings that a replay varies, with dots."""

REPLAYED_QUEUE = Form(
    "queue",
    ReplayedQueue,
    (
        Attribute("name", "name", NAME, required=True),
        *_VARIED,
        Attribute("consumers", "consumers", CONSUMERS),
        Attribute("service-factor", "service_factor", REAL),
    ),
    key="name",
)
ANOTHER_RECORDING = Form(
    "also", AnotherRecording, (Attribute("recording", "recording", TEXT, required=True),)
)  # fmt: skip
REPLAY = Form(
    "replay",
    Replay,
    (
        Attribute("recording", "recording", TEXT, required=True),
        Attribute("window", "window_samples", integer(1, unlimited=True)),
        Attribute("resample", "resample_blocks", integer(0, 1_000_000)),
    ),
    (Child("queues", (REPLAYED_QUEUE,), many=True), Child("others", (ANOTHER_RECORDING,), many=True)),
    foreign=("service",),
    models=REPLAYS,
)
