"""Labels of messages, and what follows from them: contents of results, durations, transaction ids.

A label is a sender's thread, the number of its message and the path of results, see `sim.engine.behaviours`. Paths are
numbered as they occur, and the root of a thread's paths is its number. A duration is drawn from a stream of its own for
each path: the key of a new one is a hash that Python makes, so the kernel returns and goes on with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qsctl.sim.integration._records import LINK, NONE, PATH, STATE, STEP, THREAD, TRANSACTION
from qsctl.sim.kernel.jit import inlined_part, kernel, part, row, wide
from qsctl.sim.kernel.random import logarithm, uniform


@part
def find_slot(state: Any, a: int, b: int, c: int) -> int:
    """Return the slot of an entry of the hash table, or the empty one where it is to be put."""
    engine = row(state, 0, STATE)
    mixed = a * 0x9E3779B1 + b * 0x85EBCA77 + c * 0xC2B2AE3D
    mixed ^= mixed >> 15
    mask = 2 * engine.link_limit - 1
    slot = mixed & mask
    while True:
        found = row(engine.links, slot, LINK)
        if not found.used or (found.a == a and found.b == b and found.c == c):
            return int(slot)
        slot = (slot + 1) & mask


@kernel
def remember(state: Any, a: int, b: int, c: int, value: Any) -> None:
    """Put an entry into the hash table, which has room for it."""
    engine = row(state, 0, STATE)
    found = row(engine.links, find_slot(state, a, b, c), LINK)
    if not found.used:
        engine.link_count += 1
    found.used = 1
    found.a = a
    found.b = b
    found.c = c
    found.value = value


@inlined_part
def digits(number: int) -> int:
    """Return the length of a number ≥ 0 as text."""
    count = wide(1)
    while number >= 10:
        number //= 10
        count += 1
    return count


@part
def path_with(state: Any, path: int, step: int) -> int:
    """Return the path with one step more; the caller made sure that the table has room for it."""
    engine = row(state, 0, STATE)
    found = row(engine.links, find_slot(state, path, step, wide(NONE)), LINK)
    if found.used:
        return int(found.value)
    made = wide(engine.path_count)
    engine.path_count = made + 1
    engine.link_count += 1
    found.used = 1
    found.a = path
    found.b = step
    found.c = NONE
    found.value = np.uint64(made)
    before = row(engine.paths, path, PATH)
    new = row(engine.paths, made, PATH)
    new.parent = path
    new.step = step
    new.thread = before.thread
    text = digits(step) if step >= 0 else wide(row(engine.steps, -1 - step, STEP).bytes)
    new.bytes = before.bytes + 1 + text
    return made


@inlined_part
def label_bytes(state: Any, path: int, number: int) -> int:
    """Return the length of a label's line, without its line end; the length of a path includes its thread's name."""
    return int(row(row(state, 0, STATE).paths, path, PATH).bytes + digits(number) + 2)


@inlined_part
def filled(state: Any, path: int, number: int, size: int) -> int:
    """Return the length of data that has this label and is to have `size` bytes: the label's, if that is longer."""
    return max(label_bytes(state, path, number) + 1, size)


@part
def duration(state: Any, draws: int, mean: int, path: int, number: int, step: int) -> int:
    """Return a duration of a step for a message, NONE where the key of its stream is missing.

    Args:
        state: of the run.
        draws: the number of its stream of durations, NONE: constant.
        mean: in nanoseconds.
        path: of the message's label.
        number: of the label.
        step: of several steps of one message.
    """
    if draws == NONE or mean == 0:
        return mean
    engine = row(state, 0, STATE)
    found = row(engine.links, find_slot(state, -2 - draws, path, step), LINK)
    if not found.used:
        engine.missing_draws = draws
        engine.missing_path = path
        engine.missing_step = step
        return NONE
    return max(wide(1), int(np.rint(-logarithm(uniform(found.value, number)) * float(mean))))


@part
def transaction_of(state: Any, t: int, number: int) -> int:
    """Return the transaction id of a thread's message, drawn by the weights that the scenario states."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    drawn = uniform(thread.key_transaction, number) * thread.weight
    last = wide(thread.transaction_end - 1)
    for place in range(thread.transaction, thread.transaction_end):
        each = row(engine.transactions, place, TRANSACTION)
        drawn -= each.weight
        if drawn < 0:
            return int(each.id)
    return int(row(engine.transactions, last, TRANSACTION).id)
