"""The XML elements that describe a scenario's integration engine; `elements.py` puts them into the table."""

from __future__ import annotations

from typing import Final

from qsctl.core.integration.message import PRIORITY_MAX, PRIORITY_MIN
from qsctl.core.integration.routes import DetailKind, ErrorControl, ErrorSeverity
from qsctl.declared.values import DURATION
from qsctl.sim.scenario import scenario as s
from qsctl.sim.scenario.forms.form import INTEGRATION, Attribute, Child, Form
from qsctl.sim.scenario.forms.values import (
    BOOLEAN,
    FINITE_DURATION,
    NAME,
    POSITIVE_DURATION,
    PROBABILITY,
    REAL,
    TEXT,
    choice,
    integer,
)
from qsctl.sim.scenario.parts import engine as e

_TAKES: Final = (
    Attribute("takes", "takes_ns", FINITE_DURATION),
    Attribute("spread", "spread", choice(e.Spread)),
)
_NAMED: Final = Attribute("name", "name", TEXT)
_PROCEDURE: Final = (
    _NAMED,
    Attribute("does", "does", choice(e.Behaviour)),
    Attribute("every", "every", integer(1, 1_000_000)),
    Attribute("results", "results", integer(1, 1_000)),
    Attribute("to", "to", NAME),
    Attribute("transaction", "transaction", NAME),
    Attribute("times", "times", integer(1, 1_000)),
    *_TAKES,
    Attribute("recoverable", "recoverable", BOOLEAN),
    Attribute("text", "text", TEXT),
)
PROCEDURE = Form("procedure", e.EngineProcedure, _PROCEDURE)
REPLY_PROCEDURE = Form("reply-procedure", e.EngineProcedure, _PROCEDURE)
PRE = Form("pre", e.EngineProcedure, _PROCEDURE)
POST = Form("post", e.EngineProcedure, _PROCEDURE)
TRANSLATION = Form(
    "translation",
    e.EngineTranslation,
    (
        _NAMED,
        Attribute("results", "results", integer(0, 1_000)),
        *_TAKES,
        Attribute("error-every", "error_every", integer(0, 1_000_000)),
        Attribute("error-after", "error_after", integer(0, 1_000)),
        Attribute("severity", "severity", choice(ErrorSeverity)),
        Attribute("on-error", "on_error", choice(ErrorControl)),
    ),
)
DETAIL = Form(
    "detail",
    e.EngineDetail,
    (Attribute("to", "to", TEXT), Attribute("kind", "kind", choice(DetailKind))),
    (
        Child("pre", (PRE,), many=True),
        Child("translations", (TRANSLATION,), many=True),
        Child("post", (POST,), many=True),
    ),
)
ROUTE = Form(
    "route",
    e.EngineRoute,
    (Attribute("transaction", "transaction", TEXT),),
    (Child("details", (DETAIL,), many=True),),
    key="transaction",
)
TRANSACTION = Form(
    "transaction",
    e.EngineTransaction,
    (Attribute("id", "id", NAME, required=True), Attribute("weight", "weight", REAL)),
    key="id",
)
_INTERVAL: Final = (
    Attribute("start", "start_ns", FINITE_DURATION, required=True),
    Attribute("duration", "duration_ns", DURATION, required=True),
    Attribute("every", "every_ns", DURATION),
)
STOP = Form("stop", s.ClientInterval, _INTERVAL)
OUTAGE = Form("outage", s.ClientInterval, _INTERVAL)
CRASH = Form("crash", s.ClientInterval, _INTERVAL)
POWER_FAILURE = Form("power-failure", s.ClientInterval, _INTERVAL)


def engine_form(arrivals: tuple[Form, ...], sizes: tuple[Form, ...], service: tuple[Form, ...]) -> Form:
    """Return the form of the element `<engine>`, with the forms of arrivals, sizes and service times of all models."""
    inbound = Form(
        "inbound",
        e.EngineInbound,
        (
            Attribute("logging", "logging", BOOLEAN),
            Attribute("priority", "priority", integer(PRIORITY_MIN, PRIORITY_MAX)),
        ),
        (
            Child("arrivals", arrivals, required=True),
            Child("size", sizes),
            Child("transactions", (TRANSACTION,), many=True),
            Child("procedures", (PROCEDURE,), many=True),
            Child("reply_procedures", (REPLY_PROCEDURE,), many=True),
            Child("routes", (ROUTE,), many=True),
        ),
    )
    outbound = Form(
        "outbound",
        e.EngineOutbound,
        (
            Attribute("refuses", "refuses", PROBABILITY),
            Attribute("retries", "retries", integer(0, 1_000_000, unlimited=True)),
            Attribute("retry-interval", "retry_interval_ns", POSITIVE_DURATION),
            Attribute("awaits-reply", "awaits_reply", BOOLEAN),
            Attribute("reply-timeout", "reply_timeout_ns", DURATION),
            Attribute("reply-delay", "reply_delay_ns", FINITE_DURATION),
            Attribute("silent", "silent", PROBABILITY),
        ),
        (
            Child("service", service, required=True),
            Child("procedures", (PROCEDURE,), many=True),
            Child("outages", (OUTAGE,), many=True),
        ),
    )
    thread = Form(
        "thread",
        e.EngineThread,
        (
            Attribute("name", "name", NAME, required=True),
            Attribute("tps-retries", "tps_retries", integer(0, 1_000_000, unlimited=True)),
            Attribute("tps-retry-interval", "tps_retry_interval_ns", POSITIVE_DURATION),
        ),
        (Child("inbound", (inbound,)), Child("outbound", (outbound,)), Child("stops", (STOP,), many=True)),
        key="name",
    )
    process = Form(
        "process",
        e.EngineProcess,
        (Attribute("name", "name", NAME, required=True),),
        (Child("threads", (thread,), many=True), Child("crashes", (CRASH,), many=True)),
        key="name",
    )
    return Form(
        "engine",
        e.Engine,
        (
            Attribute("icl-delay", "icl_delay_ns", FINITE_DURATION),
            Attribute("turns-max", "turns_max", integer(1, 1_000)),
        ),
        (Child("processes", (process,), many=True), Child("failures", (POWER_FAILURE,), many=True)),
        models=INTEGRATION,
    )
