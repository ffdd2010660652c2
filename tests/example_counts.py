"""How many examples hypothesis draws where a test says so itself: few in ordinary runs, many in campaigns."""

from __future__ import annotations

from hypothesis import settings

_IS_NIGHTLY = settings.default.max_examples > 1000  # type: ignore[union-attr]


def examples(ordinary: int, nightly: int = 2000) -> int:
    """Return the number for this run: the longer one with `-m campaign`, or with HYPOTHESIS_PROFILE=nightly."""
    return nightly if _IS_NIGHTLY else ordinary
