"""A scenario's engine as the initial content of the kernel's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.core.integration.message import PRIORITY_DEFAULT
from qsctl.core.integration.procedures import Procedure
from qsctl.core.integration.routes import (
    ANY_TRANSACTION,
    DetailKind,
    ErrorControl,
    ErrorSeverity,
    Route,
    RouteDetail,
    Translation,
)
from qsctl.core.integration.settings import EngineSettings, InboundSettings
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.sim.engine.behaviours import DeclaredProcedure, DeclaredTranslation, Durations
from qsctl.sim.engine.build import engine_settings
from qsctl.sim.engine.plan import Interruption, RunPlan
from qsctl.sim.engine.visit_log import QUEUES
from qsctl.sim.integration import _records as r
from qsctl.sim.kernel.random import stream_key
from qsctl.sim.scenario.parts.engine import Behaviour, EngineThread, EngineTransaction, Spread
from qsctl.sim.scenario.scenario import ConstantArrivals, PoissonArrivals, Scenario

_BEHAVIOURS: Final = {
    Behaviour.PASS: r.PASS,
    Behaviour.CHANGE: r.CHANGE,
    Behaviour.DROP: r.DROP,
    Behaviour.SPLIT: r.SPLIT,
    Behaviour.FAIL: r.FAIL,
    Behaviour.LOOP: r.LOOP,
    Behaviour.SEND: r.SEND,
    Behaviour.OVER: r.OVER,
    Behaviour.PROTO: r.PROTO,
    Behaviour.ERROR: r.ERROR,
    Behaviour.KILLREPLY: r.KILLREPLY,
    Behaviour.REROUTE: r.REROUTE,
    Behaviour.RETRY: r.RETRY,
}
_REACHES: Final = {
    ErrorControl.SKIP.value: r.SKIP,
    ErrorControl.CURDETAIL.value: r.CURRENT_DETAIL,
    ErrorControl.ALLDETAIL.value: r.ALL_DETAILS,
}
_INTERRUPTIONS: Final = {
    Interruption.POWER: r.POWER,
    Interruption.PROCESS: r.PROCESS_FAILS,
    Interruption.THREAD: r.THREAD_STOPS,
    Interruption.CONNECTION: r.CONNECTION_LOST,
}
_OF_INBOUND, _OF_ROUTING, _POST, _OF_OUTBOUND = (0, 1), (2, 3, 4), 5, (6, 7)
"""Indices of `visit_log.QUEUES`."""
_LAST: Final = len(QUEUES) - 1


@dataclass(slots=True)
class EngineLayout:
    """The initial content of the kernel's arrays."""

    arrays: dict[str, npt.NDArray[Any]]
    numbers: dict[str, int]
    threads: list[str]
    """Names of the protocol threads, by number."""
    clients: list[str]
    """Names of all threads, by the numbers of the log."""
    steps: list[str]
    """Texts of paths, by number."""
    draws: list[str]
    """Names of streams of durations, by number."""


def lay_out_engine(scenario: Scenario, replication: int, clients: Sequence[str]) -> EngineLayout:
    """Return the arrays of a run at its beginning.

    Raises:
        InvalidInput: two threads or processes of one name, a route to a thread that cannot send.
    """
    return _LayoutMaker(scenario, replication, list(clients)).layout()


class _LayoutMaker:
    def __init__(self, scenario: Scenario, replication: int, clients: list[str]) -> None:
        assert scenario.engine is not None
        self._scenario, self._engine, self._replication = scenario, scenario.engine, replication
        self._settings: EngineSettings = engine_settings(scenario.engine, scenario.seed, replication)
        self._declared = [thread for process in scenario.engine.processes for thread in process.threads]
        self._threads = {thread.name: number for number, thread in enumerate(self._declared)}
        self._clients = clients
        self._client = {name: number for number, name in enumerate(clients)}
        self._steps: dict[str, int] = {"reply": 0}
        self._draws: list[str] = []
        self._ids: dict[str, int] = {"": 0}
        self._procedures: list[tuple[int, ...]] = []
        self._details: list[tuple[int, ...]] = []
        self._translations: list[tuple[int, ...]] = []
        self._routes: list[tuple[int, int]] = []
        self._values: list[int] = []
        self._transactions: list[tuple[int, float]] = []
        self._most_results = 2
        self._most_destinations = 2
        inbound = [each.inbound for each in self._declared if each.inbound is not None]
        priorities = {PRIORITY_DEFAULT, *(each.priority for each in inbound)}
        self._ranks = {priority: rank for rank, priority in enumerate(sorted(priorities, reverse=True))}

    def layout(self) -> EngineLayout:
        """Return the initial content of the kernel's arrays."""
        count = len(self._declared)
        processes = np.zeros(len(self._engine.processes), r.PROCESS)
        threads = np.zeros(count, r.THREAD)
        choices: list[dict[str, int]] = []
        number = 0
        for place, process in enumerate(self._settings.processes):
            first = number
            for settings in process.threads:
                self._thread(threads[number], self._declared[number], place)
                one = threads[number]
                one["procedures_out"], one["procedures_out_end"] = self._range(
                    settings.outbound.procedures if settings.outbound is not None else ()
                )
                inbound = settings.inbound
                one["procedures_in"], one["procedures_in_end"] = self._range(inbound.procedures if inbound else ())
                one["replies_in"], one["replies_in_end"] = self._range(inbound.reply_procedures if inbound else ())
                choices.append(self._choices(inbound) if inbound is not None else {})
                number += 1
            processes[place] = (0, 0, first, number, self._client[f"{process.name}_xlate"])
        queues, counts, done = self._queues(threads, len(processes))
        ranks = len(self._ranks)
        arrays: dict[str, npt.NDArray[Any]] = {
            "processes": processes,
            "threads": threads,
            "queues": queues,
            "counts": counts,
            "lines": np.full(2 * len(queues) * ranks, r.NONE, np.int64).view(r.LINE),
            "workers": _workers(count + len(processes)),
            "procedures": _rows(self._procedures, r.PROCEDURE),
            "details": _rows(self._details, r.DETAIL),
            "translations": _rows(self._translations, r.TRANSLATION),
            "routes": _rows(self._routes, r.ROUTE),
            "values": _rows([(each,) for each in self._values], r.VALUE),
            "transactions": _rows(self._transactions, r.TRANSACTION),
            "choices": self._table(choices),
            "planned": self._planned(),
            "steps": _rows([(len(each.encode()),) for each in self._steps], r.STEP),
            "senders": _rows(
                [(place,) for place, each in enumerate(self._declared) if each.inbound is not None], r.VALUE
            ),
            "dirty": np.zeros(count * len(processes), r.DIRTY),
            "released": np.zeros(2 * count + 8, r.RELEASED),
            "started": np.zeros(2 * count + 8, r.VALUE),
            "awake": np.zeros(count + len(processes) + 1, r.VALUE),
            "panics": np.zeros(len(processes) + 1, r.VALUE),
            "failed": np.zeros(len(self._clients), r.VALUE),
        }  # fmt: skip
        translations = count * r.OF_THREAD
        numbers = {
            "thread_count": count,
            "process_count": len(processes),
            "rank_count": ranks,
            "key_count": len(counts),
            "done_count": done,
            "translation_base": translations,
            "post_base": translations + len(processes) * r.OF_TRANSLATION,
            "queue_count": len(queues),
            "transaction_count": len(self._ids),
            "step_reply": -1 - self._steps["reply"],
            "icl_delay": min(self._engine.icl_delay_ns, r.FOREVER),
            "turns_max": self._engine.turns_max,
            "results_max": self._most_results,
            "destinations_max": self._most_destinations,
            "warm_up": min(self._scenario.warm_up_ns, r.FOREVER),
            "planned_count": len(arrays["planned"]),
        }
        return EngineLayout(arrays, numbers, list(self._threads), self._clients, list(self._steps), self._draws)

    def _thread(self, one: Any, declared: EngineThread, process: int) -> None:
        name, inbound, outbound = declared.name, declared.inbound, declared.outbound
        one["process"], one["client"] = process, self._client[name]
        one["connected"], one["writing"], one["reserved"] = 1, r.NONE, r.NONE
        one["held_head"] = one["held_tail"] = r.NONE
        one["tps_retries"] = declared.tps_retries
        one["tps_retry_interval"] = min(declared.tps_retry_interval_ns, r.FOREVER)
        one["rank"] = self._ranks[PRIORITY_DEFAULT if inbound is None else inbound.priority]
        for purpose in ("service", "answer", "reply", "transaction"):
            one[f"key_{purpose}"] = stream_key(self._scenario.seed, self._replication, name, purpose)
        one["transaction"] = len(self._transactions)
        if inbound is not None:
            one["inbound"], one["logged"] = 1, inbound.logging
            given = inbound.transactions or (EngineTransaction("any"),)
            one["weight"] = sum(each.weight for each in given)
            self._transactions += [(self._id(each.id), each.weight) for each in given]
        one["transaction_end"] = len(self._transactions)
        if outbound is not None:
            service = outbound.service
            assert isinstance(service, PoissonArrivals | ConstantArrivals)
            one["outbound"] = 1
            one["exponential"] = isinstance(service, PoissonArrivals)
            one["mean_ns"] = SECOND_NS / service.rate_per_second
            one["service"] = round(SECOND_NS / service.rate_per_second)
            one["retries"] = outbound.retries
            one["retry_interval"] = min(outbound.retry_interval_ns, r.FOREVER)
            one["awaits_reply"] = outbound.awaits_reply
            one["reply_timeout"] = min(outbound.reply_timeout_ns, r.FOREVER)
            one["reply_delay"] = min(outbound.reply_delay_ns, r.FOREVER)
            one["refuses"], one["silent"] = outbound.refuses, outbound.silent

    def _id(self, transaction: str) -> int:
        return self._ids.setdefault(transaction, len(self._ids))

    def _step(self, text: str) -> int:
        return -1 - self._steps.setdefault(text, len(self._steps))

    def _durations(self, durations: Durations) -> tuple[int, int]:
        takes = min(durations.takes_ns, r.FOREVER)
        if takes == 0 or durations.spread is Spread.CONSTANT:
            return takes, r.NONE
        self._draws.append(durations.name)
        return takes, len(self._draws) - 1

    def _range(self, procedures: Sequence[Procedure]) -> tuple[int, int]:
        first = len(self._procedures)
        for each in procedures:
            assert isinstance(each, DeclaredProcedure)
            declared = each.declared
            takes, draws = self._durations(each.durations)
            step = 0
            if declared.does is Behaviour.CHANGE:
                step = self._step(declared.text or "c")
            elif declared.does is Behaviour.REROUTE:
                step = self._step(declared.transaction)
            does = _BEHAVIOURS[declared.does]
            if declared.does is Behaviour.SPLIT:
                self._most_results = max(self._most_results, declared.results)
            self._procedures.append(
                (
                    does, declared.every, declared.results, self._threads.get(declared.to, r.NONE),
                    self._id(declared.transaction), declared.times, takes, draws, declared.recoverable, step,
                )
            )  # fmt: skip
        return first, len(self._procedures)

    def _choices(self, inbound: InboundSettings) -> dict[str, int]:
        found: dict[str, int] = {}
        for route in inbound.routes:
            found[route.transaction_id] = self._route(route)
            self._id(route.transaction_id)
        return found

    def _route(self, route: Route) -> int:
        details = [self._detail(each) for each in route.details]
        first = len(self._details)
        self._details += details
        self._routes.append((first, len(self._details)))
        return len(self._routes) - 1

    def _detail(self, detail: RouteDetail) -> tuple[int, ...]:
        first = len(self._values)
        self._values += [self._threads[each] for each in detail.destinations]
        self._most_destinations = max(self._most_destinations, len(detail.destinations))
        destinations = first, len(self._values)
        chain = detail.translations if detail.kind is DetailKind.TRANSLATE else ()
        return (*destinations, *self._range(detail.pre), *self._chain(chain), *self._range(detail.post))

    def _chain(self, chain: Sequence[Translation]) -> tuple[int, int]:
        first = len(self._translations)
        for each in chain:
            assert isinstance(each, DeclaredTranslation)
            declared = each.declared
            takes, draws = self._durations(each.durations)
            is_own = declared.severity is ErrorSeverity.ACTION
            reach = _REACHES[declared.on_error.value if is_own else declared.severity.value]
            self._translations.append(
                (declared.results, takes, draws, declared.error_every, declared.error_after, reach)
            )
        return first, len(self._translations)

    def _table(self, choices: list[dict[str, int]]) -> npt.NDArray[Any]:
        """Return the route of each thread and transaction id."""
        table = np.full((len(choices), len(self._ids)), r.NONE, np.int64)
        for number, found in enumerate(choices):
            table[number, :] = found.get(ANY_TRANSACTION, r.NONE)
            for transaction, route in found.items():
                table[number, self._ids[transaction]] = route
        return table.reshape(-1).view(r.CHOICE)

    def _queues(self, threads: Any, processes: int) -> tuple[Any, Any, int]:
        """Return the queues, the rows of their counters, and the number of queues with acknowledgments."""
        count = len(threads)
        keys: list[tuple[int, int]] = []
        """Client and stage of each row of counters."""
        key: dict[tuple[int, int], int] = {}
        for thread in threads:
            stages = (*(_OF_INBOUND if thread["inbound"] else _OF_INBOUND[1:]),
                      *((_POST, *_OF_OUTBOUND) if thread["outbound"] else ()))  # fmt: skip
            keys += [(int(thread["client"]), stage) for stage in stages]
        for process in self._settings.processes:
            keys += [(self._client[f"{process.name}_xlate"], stage) for stage in _OF_ROUTING]
        key = {each: number for number, each in enumerate(sorted(keys))}
        queues = np.zeros(count * r.OF_THREAD + processes * (r.OF_TRANSLATION + count), r.QUEUE)
        queues["key"] = r.NONE
        place = 0
        for thread in threads:
            for stage in (*_OF_INBOUND, *_OF_OUTBOUND):
                queues[place]["key"] = key.get((int(thread["client"]), stage), r.NONE)
                queues[place]["process"] = thread["process"]
                place += 1
        for number, process in enumerate(self._settings.processes):
            for stage in _OF_ROUTING:
                queues[place]["key"] = key[self._client[f"{process.name}_xlate"], stage]
                queues[place]["process"] = number
                place += 1
        for number in range(processes):
            for thread in threads:
                queues[place]["key"] = key.get((int(thread["client"]), _POST), r.NONE)
                queues[place]["process"] = number
                place += 1
        counts = np.zeros(len(key), r.COUNT)
        counts["last"], counts["first_discard"] = r.NONE, r.NONE
        counts["client"] = [client for client, _ in sorted(key)]
        counts["stage"] = [stage for _, stage in sorted(key)]
        last = counts["stage"] == _LAST
        counts["last"][last] = np.arange(last.sum())
        return queues, counts, int(last.sum())

    def _planned(self) -> npt.NDArray[Any]:
        plan = RunPlan(self._engine, self._scenario.horizon_ns, 0, 0)
        processes = {process.name: number for number, process in enumerate(self._engine.processes)}
        rows = []
        for each in plan.coming:
            names = processes if each.what is Interruption.PROCESS else self._threads
            subject = 0 if each.what is Interruption.POWER else names[each.name]
            rows.append((min(each.at_ns, INFINITE_NS), _INTERRUPTIONS[each.what], subject, each.is_end))
        return _rows(rows, r.PLANNED)


def _rows(rows: Sequence[tuple[float, ...]], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return rows as an array of a record type."""
    made = np.zeros(len(rows), kind)
    for place, each in enumerate(rows):
        made[place] = each
    return made


def _workers(count: int) -> npt.NDArray[Any]:
    made = np.zeros(count, r.WORKER)
    for name in ("message", "frame", "verdict_head", "verdict_tail", "flight_head", "flight_tail", "dirty_head"):
        made[name] = r.NONE
    return made
