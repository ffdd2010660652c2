"""How a replay is written: `<replay>` and its `<queue>` elements, see `forms.py`."""

from __future__ import annotations

from qsctl.config.values import DURATION
from qsctl.core.queue.settings import ReplacementKind
from qsctl.sim.scenario.form import REPLAY as REPLAYS
from qsctl.sim.scenario.form import Attribute, Child, Form
from qsctl.sim.scenario.replay import Replay, ReplayedQueue
from qsctl.sim.scenario.values import CONSUMERS, NAME, REAL, TEXT, choice, integer

REPLAYED_QUEUE = Form(
    "queue",
    ReplayedQueue,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("max-count", "max_count", integer(0, unlimited=True)),
        Attribute("max-in-memory-bytes", "max_in_memory_bytes", integer(0, unlimited=True)),
        Attribute("replacement", "replacement", choice(ReplacementKind)),
        Attribute("max-waiting", "waiting_count_max", integer(0, unlimited=True)),
        Attribute("unacked-threshold", "unacked_threshold", integer(0, unlimited=True)),
        Attribute("max-delivery-retries", "max_delivery_retries", integer(0, unlimited=True)),
        Attribute("response-timeout", "response_timeout_ns", DURATION),
        Attribute("lifespan", "lifespan_ns", DURATION),
        Attribute("consumers", "consumers", CONSUMERS),
        Attribute("service-factor", "service_factor", REAL),
    ),
    key="name",
)
REPLAY = Form(
    "replay",
    Replay,
    (
        Attribute("recording", "recording", TEXT, required=True),
        Attribute("window", "window_samples", integer(1, unlimited=True)),
        Attribute("resample", "resample_blocks", integer(0, 1_000_000)),
    ),
    (Child("queues", (REPLAYED_QUEUE,), many=True),),
    foreign=("service",),
    models=REPLAYS,
)
