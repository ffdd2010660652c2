"""How much tests try: little in an ordinary run, much in a campaign, for which nobody waits.

`pytest -m campaign` runs the tests whose size is given here, and those of hypothesis, at the size of a campaign
(`.ci/nightly` does); everything else runs them at the small one, which is enough to see a rule broken that each trial
would break. A test's variable, named in its first lines, gives it any other size.
"""

from __future__ import annotations

import os

CAMPAIGN_VARIABLE = "QSCTL_TEST_CAMPAIGN"
"""Set to 1 by `conftest` where `-m campaign` is given."""


def is_campaign() -> bool:
    """Return whether this run is a campaign; asked for while tests are imported, for none of them sees the caller's."""
    return os.environ.get(CAMPAIGN_VARIABLE) == "1"


def trials(variable: str, ordinary: int, campaign: int) -> int:
    """Return the number of trials: the variable's where it is set, else the one for this kind of run."""
    chosen = os.environ.get(variable)
    return int(chosen) if chosen else campaign if is_campaign() else ordinary
