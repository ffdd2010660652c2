"""The routes that apply to a message of a thread.

Our reading, where the sources are silent: every route that names the transaction id exactly or by wildcard applies, and
the static route applies to all messages; the route for all other messages applies only where none of these does. A
wildcard is a regular expression that the whole transaction id must match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from qsctl.netconfig.model import NetRoute

OTHER: Final = "other"
"""Transaction id of a simulated message that no route names."""
_LONGEST_PATTERN: Final = 1_000
_NAME: Final = re.compile(r"[^A-Za-z0-9_.:@/\-]+")


@lru_cache(maxsize=4096)
def pattern_of(name: str) -> re.Pattern[str] | None:
    """Compile the regular expression of a wildcard; None if it is invalid."""
    if len(name) > _LONGEST_PATTERN:
        return None
    try:
        return re.compile(name)
    except (re.error, RecursionError, OverflowError):
        return None


def is_for(route: NetRoute, transaction_id: str) -> bool:
    """Return whether a route covers a transaction id: by its exact name, by its wildcard, or because it is static."""
    if route.is_static or route.is_else:
        return route.is_static
    if route.is_wildcard:
        pattern = pattern_of(route.transaction_id)
        return pattern is not None and pattern.fullmatch(transaction_id) is not None
    return route.transaction_id == transaction_id


def routes_for(routes: Sequence[NetRoute], transaction_id: str) -> list[NetRoute]:
    """Return the routes that apply to messages of a transaction id, in the order of the file."""
    found = [each for each in routes if is_for(each, transaction_id)]
    return found or [each for each in routes if each.is_else]


def representatives(routes: Iterable[NetRoute], observed: Iterable[str] = ()) -> dict[str, list[NetRoute]]:
    """Return transaction ids that together represent all messages of a thread, each with the routes that apply to it.

    They are the observed ids and those of exact routes. A wildcard that matches none of them contributes an id made
    from its expression; a route for all other messages contributes a further id.
    """
    given = list(routes)
    ids = dict.fromkeys(observed)
    ids.update(dict.fromkeys(each.transaction_id for each in given if _is_exact(each)))
    found = {each: routes_for(given, each) for each in ids}
    for route in given:
        if route.is_wildcard and not any(route in those for those in found.values()):
            name = _NAME.sub("_", route.transaction_id).strip("_.") or OTHER
            statics = [each for each in given if each.is_static]
            found.setdefault(name, []).extend(each for each in (route, *statics) if each not in found.get(name, ()))
    rest = [each for each in given if each.is_static] or [each for each in given if each.is_else]
    if rest and (not found or any(each.is_else for each in rest)):
        found.setdefault(OTHER, rest)
    return {name: those for name, those in found.items() if those}


def _is_exact(route: NetRoute) -> bool:
    return not (route.is_wildcard or route.is_static or route.is_else)
