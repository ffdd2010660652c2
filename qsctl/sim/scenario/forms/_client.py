"""The elements of a group of clients: its connection, its application's service time, its pauses and absences."""

from __future__ import annotations

from typing import Final

from qsctl.declared.values import DURATION
from qsctl.sim.scenario.forms.form import EGRESS, SOLACE, Attribute, Child, Columns, Form
from qsctl.sim.scenario.forms.values import (
    BIT_RATE,
    BOOLEAN,
    FINITE_DURATION,
    NAME,
    POSITIVE_DURATION,
    PROBABILITY,
    PROFILE_NAME,
    REAL,
    integer,
    size,
)
from qsctl.sim.scenario.parts import client as c

_INTERVAL: Final = (
    Attribute("start", "start_ns", FINITE_DURATION, required=True),
    Attribute("duration", "duration_ns", DURATION, required=True),
    Attribute("every", "every_ns", DURATION),
)
PAUSE = Form("pause", c.ClientInterval, _INTERVAL)
ABSENCE = Form("absence", c.ClientInterval, _INTERVAL)

CONSTANT_TIME = Form(
    "service-time", c.ConstantTime, (Attribute("duration", "duration_ns", FINITE_DURATION, required=True),)
)
UNIFORM_TIME = Form(
    "uniform-service-time",
    c.UniformTime,
    (
        Attribute("minimum", "minimum_ns", POSITIVE_DURATION, required=True),
        Attribute("maximum", "maximum_ns", POSITIVE_DURATION, required=True),
    ),
)
LOGNORMAL_TIME = Form(
    "lognormal-service-time",
    c.LognormalTime,
    (
        Attribute("median", "median_ns", POSITIVE_DURATION, required=True),
        Attribute("sigma", "sigma", REAL, required=True),
        Attribute("maximum", "maximum_ns", POSITIVE_DURATION),
    ),
)
EXPONENTIAL_TIME = Form(
    "exponential-service-time",
    c.ExponentialTime,
    (
        Attribute("mean", "mean_ns", POSITIVE_DURATION, required=True),
        Attribute("maximum", "maximum_ns", POSITIVE_DURATION),
    ),
)
PARETO_TIME = Form(
    "pareto-service-time",
    c.ParetoTime,
    (
        Attribute("minimum", "minimum_ns", POSITIVE_DURATION, required=True),
        Attribute("shape", "shape", REAL, required=True),
        Attribute("maximum", "maximum_ns", POSITIVE_DURATION),
    ),
)
MIXED_TIME = Form(
    "mixed-service-time",
    c.MixedTime,
    columns=Columns(
        "choice",
        (
            Attribute("duration", "times_ns", POSITIVE_DURATION, required=True),
            Attribute("weight", "weights", REAL, required=True),
        ),
    ),
)
SERVICE_TIMES: Final = (CONSTANT_TIME, UNIFORM_TIME, LOGNORMAL_TIME, EXPONENTIAL_TIME, PARETO_TIME, MIXED_TIME)

GROUP = Form(
    "group",
    c.ClientGroup,
    (
        Attribute("name", "name", NAME, required=True),
        Attribute("port", "port", NAME, required=True),
        Attribute("profile", "profile", PROFILE_NAME, required=True),
        Attribute("count", "count", integer(1, 1_000_000)),
        Attribute("round-trip", "round_trip_ns", FINITE_DURATION),
        Attribute("link-rate", "link_rate_bits_per_second", BIT_RATE),
        Attribute("loss", "loss_probability", PROBABILITY),
        Attribute("delayed-acknowledgment", "delayed_acknowledgment_ns", FINITE_DURATION),
        Attribute("acknowledgment-latency", "acknowledgment_latency_ns", FINITE_DURATION),
        Attribute("receive-buffer", "receive_buffer_bytes", size(0, c.RECEIVE_BUFFER_BYTES_MAX)),
        Attribute("readers", "readers", integer(1, c.READERS_MAX)),
        Attribute("neighbor", "neighbor", BOOLEAN, models=SOLACE),
    ),
    (
        Child("service_time", SERVICE_TIMES),
        Child("pauses", (PAUSE,), many=True),
        Child("absences", (ABSENCE,), many=True),
    ),
    key="name",
    models=EGRESS,
)
