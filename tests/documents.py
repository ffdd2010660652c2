"""What the documents show: the commands of README and of the pages, each with the output below it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def page(name: str) -> str:
    """The text of a written page."""
    return (ROOT / "qsctl" / "docs" / f"{name}.md").read_text(encoding="utf-8")


def shown(text: str) -> dict[str, str]:
    """Each command line of the blocks `console` with the output below it."""
    return dict(tour(text))


def tour(text: str) -> list[tuple[str, str]]:
    """The same in the order of the page; a command may come again."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.rstrip("\n")))
    return found


def programs(text: str) -> list[str]:
    """The blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
