"""The names of a broker's clients, built on access, since a run of many clients shows few of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from qsctl.sim.scenario.scenario import Scenario


class ClientNames(Sequence[str]):
    """The names of clients and durable queues, by their numbers in the kernels.

    The only client of a group has the group's name; the clients of a larger group are name/1, name/2 and so on.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._groups = [(group.name, group.count) for group in scenario.groups]
        self._groups += [(queue.name, 1) for queue in scenario.durable_queues]
        self._firsts = [0]
        for _, count in self._groups:
            self._firsts.append(self._firsts[-1] + count)

    def __len__(self) -> int:
        """Return the number of clients and durable queues."""
        return self._firsts[-1]

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        """Return the name of a client, or those of several."""
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"client {number} of {len(self)}")
        number %= len(self)
        place = bisect_right(self._firsts, number) - 1
        name, count = self._groups[place]
        return name if count == 1 else f"{name}/{number - self._firsts[place] + 1}"

    def __iter__(self) -> Iterator[str]:
        """Yield all names, in order."""
        for name, count in self._groups:
            if count == 1:
                yield name
            else:
                yield from (f"{name}/{i + 1}" for i in range(count))
