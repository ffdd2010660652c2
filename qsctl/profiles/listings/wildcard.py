"""Names with the broker's wildcards: `?` is one character, `*` zero or more [SOL-QUEUES]."""

from __future__ import annotations


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches the whole name; every character but `?` and `*` matches itself.

    Goes back to the last `*` alone, so that no pattern takes more time than the product of the lengths.
    """
    p = n = 0
    star, resume = -1, 0
    while n < len(name):
        if p < len(pattern) and pattern[p] == "*":
            star, resume = p, n
            p += 1
        elif p < len(pattern) and pattern[p] in {"?", name[n]}:
            p += 1
            n += 1
        elif star >= 0:
            resume += 1
            p, n = star + 1, resume
        else:
            return False
    return all(character == "*" for character in pattern[p:])
