"""The view "What if": a scenario whose settings the user moves, and the simulated results as they change.

Decides the requests of the view. The response to a question is a stream of events: its state (compiling, simulating),
then results from increasingly many repetitions, then the end. A reader that disconnects ends the question.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl.errors import InvalidInput, QsctlError, UsageError
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario
from qsctl.web._context import PageView, WebContext
from qsctl.web._events import EventStream
from qsctl.web._what_if_answerer import Answerer, WhatIfQuestion, refuse_what_is_too_large, with_seed
from qsctl.web._what_if_figures import answer_of
from qsctl.web._what_if_sliders import Control, controls_of
from qsctl.web._what_if_sources import Source, Sources, sources_of, usual_settings
from qsctl.web._what_if_writing import Shown, written

REPETITIONS_MAX: Final = 100
_SETTINGS_MAX: Final = 64
_TEXT_MAX: Final = 300
_STILL_HERE_S: Final = 10.0
"""Seconds without an event after which the stream sends a keep-alive, so that a dead connection is detected."""
_OF_INTERVAL: Final = 3
"""Number of repetitions of the first interval shown; an interval from two is six times as wide as from many."""
_PACE_S: Final = 0.25
"""Least time between later results of a question, in seconds."""

_Text = Annotated[str, msgspec.Meta(max_length=_TEXT_MAX)]
_Settings = Annotated[dict[_Text, _Text], msgspec.Meta(max_length=_SETTINGS_MAX)]


class _Side(msgspec.Struct, forbid_unknown_fields=True):
    """A request that names a source and its changed settings; base class of the other requests."""

    source: _Text
    settings: _Settings = {}


class _Checked(_Side):
    """A request to check a text that was typed into the field of a setting."""

    path: _Text = ""
    text: _Text = ""


class _QuestionBody(msgspec.Struct, forbid_unknown_fields=True):
    """A question: simulate one or two sets of changed settings of one source."""

    page: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    source: _Text
    sides: Annotated[list[_Settings], msgspec.Meta(min_length=1, max_length=2)]
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] | None = None
    repetitions: Annotated[int, msgspec.Meta(ge=1, le=REPETITIONS_MAX)] = 10
    buckets: Annotated[int, msgspec.Meta(ge=20, le=600)] = 240


class _Wanted(_Side):
    """A request for commands and files that reproduce the results of one side."""

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] | None = None
    repetitions: Annotated[int, msgspec.Meta(ge=1, le=REPETITIONS_MAX)] = 10
    varied: _Text = ""
    queue: _Text = ""
    lost: float = 0.0
    wait_p99_ns: float = 0.0


_Kind = TypeVar("_Kind")


async def _read(request: Request, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the request is not valid: {error}", remedy="Reload the page.") from None


def view(_context: WebContext) -> PageView:
    """Return the view, which every server has: it works with the built-in scenarios alone."""
    return PageView("what_if", "What if")


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the routes of the view."""
    asked = context.what_if
    parts = _WhatIf(context, sources_of(asked.scenarios, asked.profiles, asked.recordings))
    context.closed.append(parts.answerer.close)
    return [
        Route("/api/what-if/sources", parts.list_sources),
        Route("/api/what-if/controls", parts.show_controls, methods=["POST"]),
        Route("/api/what-if/check", parts.check, methods=["POST"]),
        Route("/api/what-if/answer", parts.answer, methods=["POST"]),
        Route("/api/what-if/written", parts.write, methods=["POST"]),
    ]


class _WhatIf:
    """The handlers of the view's requests."""

    def __init__(self, context: WebContext, sources: Sources) -> None:
        self._context = context
        self._sources = sources
        self.answerer = Answerer(max(1, min(4, os.cpu_count() or 1)))

    async def list_sources(self, _request: Request) -> Response:
        """Respond with the names and kinds of the sources."""
        found = [{"name": each.name, "kind": each.kind.value} for each in self._sources.by_name.values()]
        return JSONResponse({"sources": found})

    async def show_controls(self, request: Request) -> Response:
        """Respond with the controls of a source and its settings; invalid settings are omitted and reported."""
        side = await _read(request, _Side)
        source = self._sources.find(side.source)

        def made() -> dict[str, Any]:
            base = source.scenario()
            changed, problems = _applied(base, side.settings)
            return {
                "title": base.name,
                "kind": source.kind.value,
                "description": base.description,
                "model": str(base.model),
                "seed": base.seed,
                "usual": usual_settings(base),
                "controls": [dataclasses.asdict(each) for each in controls_of(base, changed)],
                "problems": problems,
            }

        return JSONResponse(await anyio.to_thread.run_sync(made))

    async def check(self, request: Request) -> Response:
        """Respond with the control of a setting at a text that was typed into its field."""
        checked = await _read(request, _Checked)
        source = self._sources.find(checked.source)

        def made() -> Control:
            base = source.scenario()
            others = {path: text for path, text in checked.settings.items() if path != checked.path}
            changed = apply_overrides(_applied(base, others)[0], {checked.path: checked.text})
            check_rules(changed)
            found = next((each for each in controls_of(base, changed) if each.path == checked.path), None)
            if found is None:
                raise UsageError(f"{checked.path} is not among the settings", remedy="Reload the page.")
            return found

        return JSONResponse(dataclasses.asdict(await anyio.to_thread.run_sync(made)))

    async def answer(self, request: Request) -> Response:
        """Respond to a question with a stream of events."""
        asked = await _read(request, _QuestionBody)
        source = self._sources.find(asked.source)
        sides = await anyio.to_thread.run_sync(lambda: tuple(_side(source, each, asked.seed) for each in asked.sides))
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        question = WhatIfQuestion(asked.page, sides, asked.repetitions, asked.buckets, _from_threads(loop, news))
        for each in sides:
            refuse_what_is_too_large(each)
        return EventStream(self._events(question, news), self._context)

    async def _events(self, question: WhatIfQuestion, news: asyncio.Event) -> AsyncIterator[Any]:
        shown, shown_at = 0, 0.0
        self.answerer.ask(question)
        try:
            while True:
                is_ended, state = question.ended.is_set(), question.state
                if question.refusal is not None:
                    error = question.refusal
                    yield {"kind": "refused", "message": error.message, "remedy": error.remedy}
                    return
                if state == "overtaken":
                    yield {"kind": "overtaken"}
                    return
                wait_s = _STILL_HERE_S
                if question.complete > shown:
                    wait_s = 0.0 if is_ended else _wait_s(shown, question.complete, shown_at)
                    if wait_s <= 0:
                        found = await anyio.to_thread.run_sync(answer_of, question)
                        shown, shown_at = found["repetitions"], time.monotonic()
                        yield found
                        continue
                elif not shown:
                    yield {
                        "kind": state,
                        "simulated_ns": question.simulated_ns,
                        "horizon_ns": question.sides[0].horizon_ns,
                    }
                if is_ended and shown == question.repetitions:
                    yield {"kind": "done"}
                    return
                with anyio.move_on_after(wait_s) as waiting:
                    await news.wait()
                news.clear()
                if waiting.cancelled_caught and wait_s == _STILL_HERE_S:
                    yield None
        finally:
            self.answerer.drop(question)

    async def write(self, request: Request) -> Response:
        """Respond with commands and files that reproduce the results of a side."""
        wanted = await _read(request, _Wanted)
        shown = Shown(
            self._sources.find(wanted.source), wanted.settings, wanted.seed, wanted.repetitions, wanted.varied,
            wanted.queue, wanted.lost, wanted.wait_p99_ns,
        )  # fmt: skip
        found = await anyio.to_thread.run_sync(written, shown)
        return JSONResponse({"written": [dataclasses.asdict(each) for each in found]})


def _wait_s(shown: int, complete: int, shown_at: float) -> float:
    """Return the seconds to wait for further repetitions before results are sent, since drawing each of them takes
    time.

    The first repetition is sent at once, and the next results as soon as there are enough for an interval.
    """
    if not shown or shown < _OF_INTERVAL <= complete:
        return 0.0
    return shown_at + _PACE_S - time.monotonic()


def _from_threads(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> Callable[[], None]:
    def notify() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(news.set)

    return notify


def _side(source: Source, settings: Mapping[str, str], seed: int | None) -> Scenario:
    """Return the scenario of a source with changed settings.

    Raises:
        QsctlError: a setting is invalid; the message has its path.
    """
    changed = with_seed(apply_overrides(source.scenario(), settings), seed)
    check_rules(changed)
    if changed.replay is not None:
        from qsctl.sim.replay.settings import changed_service

        # As in `replay`, the run uses the changed service.
        return dataclasses.replace(
            changed, replay=dataclasses.replace(changed.replay, service=changed_service(changed.replay))
        )
    return changed


def _applied(base: Scenario, settings: Mapping[str, str]) -> tuple[Scenario, list[dict[str, str]]]:
    """Return the scenario with the valid settings applied, and a problem for each invalid one."""
    problems = []
    for path, text in settings.items():
        try:
            base = apply_overrides(base, {path: text})
        except (InvalidInput, UsageError) as error:
            problems.append({"path": path, "text": text, "message": error.message, "remedy": error.remedy})
    try:
        check_rules(base)
    except QsctlError as error:
        problems.append({"path": "", "text": "", "message": error.message, "remedy": error.remedy})
    return base, problems
