"""The share of a site's translation work that each process does.

Decides the amount of work. The translation thread of a process handles one message at a time, with all its route
details. The work of a message is the sum of the known durations of the details' procedures and translations; without a
table of durations, it is the number of details.
"""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.instant import SECOND_NS
from qsctl.netconfig.load import SiteLoad
from qsctl.netconfig.model import NetConfig, NetRoute, NetThread
from qsctl.netconfig.procedures import ProcedureTable
from qsctl.netconfig.routing import representatives


def process_shares(config: NetConfig, load: SiteLoad, table: ProcedureTable) -> dict[str, float]:
    """Return each process's share (0 to 1) of all translation work; empty if no arrival rate is known."""
    work: dict[str, float] = {}
    for thread in config.threads:
        if not thread.is_inbound:
            continue
        known = load.threads.get(thread.name)
        rate = known.arrived_per_s.value if known is not None and known.arrived_per_s is not None else 0.0
        work[thread.process] = work.get(thread.process, 0.0) + rate * _work_of(thread, load, table)
    total = sum(work.values())
    return {name: each / total for name, each in work.items()} if total > 0 else {}


def _work_of(thread: NetThread, load: SiteLoad, table: ProcedureTable) -> float:
    """Return the mean work of an inbound message of a thread: seconds, or details without a table of durations."""
    known = load.threads.get(thread.name)
    types = known.types if known is not None else {}
    classes = representatives(thread.routes, types)
    weights = {name: float(types.get(name, 0)) for name in classes} if types else dict.fromkeys(classes, 1.0)
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    return sum(weights[name] * _work(those, table) for name, those in classes.items()) / total


def _work(routes: Sequence[NetRoute], table: ProcedureTable) -> float:
    details = [each for route in routes for each in route.details if each.is_enabled]
    names = [
        name
        for each in details
        for name in (*(one.name for one in (*each.pre, *each.post) if one.is_enabled), *each.translations)
    ]
    rows = [table.row(name) for name in names]
    seconds = sum(row.takes_ns / SECOND_NS for row in rows if row is not None)
    return seconds if table.rows else float(len(details))
