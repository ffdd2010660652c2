"""Short names of the settings that are varied most: `max-depth(D-1)` for `profile[*]/queue[D-1]/max-depth`.

The options `--set`, `--grid` and `--vary` accept a short name wherever they accept a path.
"""

from __future__ import annotations

import re
from typing import Final

_OF_A_PROFILE: Final = re.compile(r"(max-depth|min-msg-burst)\(([^()]+)\)")
_OF_A_RECORDED_QUEUE: Final = re.compile(
    r"(max[-_]count|unacked[-_]threshold|consumers|max[-_]delivery[-_]retries)\(([^()]+)\)"
)


def whole_path(path: str) -> str:
    """Return the path of a short name; any other text unchanged."""
    text = path.strip()
    if found := _OF_A_PROFILE.fullmatch(text):
        return f"profile[*]/queue[{found[2].strip()}]/{found[1]}"
    if found := _OF_A_RECORDED_QUEUE.fullmatch(text):
        return f"queue[{found[2].strip()}]/{found[1].replace('_', '-')}"
    return text
