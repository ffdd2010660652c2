"""The frequency of each transaction id of a thread, estimated where only outgoing messages are counted.

Decides: the estimate. The weights of a source begin equal, and are changed until the predicted counts of its
destinations agree with the observed ones (the iteration of Richardson and Lucy for positive weights). Of all weights
that agree, the result is near the initial ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ROUNDS: Final = 300

Destinations = Mapping[str, float]
"""Messages to each destination for each message of a transaction id."""


def fitted_weights(
    classes: Mapping[str, Mapping[str, Destinations]], rates: Mapping[str, float], sent: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Return the weights of each source's transaction ids, which sum to 1.

    Args:
        classes: by source and transaction id, the messages to each destination.
        rates: messages a second of each source; a source without a rate gets equal weights.
        sent: messages a second to each destination; one that a source without a rate feeds is not used.
    """
    weights = {name: dict.fromkeys(ids, 1.0 / len(ids)) for name, ids in classes.items() if ids}
    blind = {each for name, ids in classes.items() if name not in rates for led in ids.values() for each in led}
    known = {name: rate for name, rate in sent.items() if rate > 0 and name not in blind}
    for _ in range(_ROUNDS):
        predicted = dict.fromkeys(known, 0.0)
        for source, ids in weights.items():
            for name, weight in ids.items():
                for destination, count in classes[source][name].items():
                    if destination in predicted:
                        predicted[destination] += rates[source] * weight * count
        for source, ids in weights.items():
            changed = {name: weight * _factor(classes[source][name], known, predicted) for name, weight in ids.items()}
            total = sum(changed.values())
            if total > 0:
                weights[source] = {name: weight / total for name, weight in changed.items()}
    return weights


def _factor(led: Destinations, known: Mapping[str, float], predicted: Mapping[str, float]) -> float:
    seen = {name: count for name, count in led.items() if name in known}
    if not seen:
        return 1.0
    ratios = sum(count * known[name] / max(predicted[name], 1e-12) for name, count in seen.items())
    return ratios / sum(seen.values())
