"""The pages of the documentation: those written in `qsctl/docs`, and those generated from the code.

Decides the groups of pages and their order. `qsctl help`, the site and the man pages use this list, so that each page
is in all three. A page that no group names is in the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from qsctl.cli.help.reference import BROKER_PAGES, REFERENCES
from qsctl.errors import NotFound

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs"
"""The folder of the written pages, which a wheel contains, too."""

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Begin": (
        "tutorial", "brokers", "rti-shop", "solace-admin", "slow-this-afternoon", "interface-analyst", "data-engineer",
    ),
    "Cheat sheets": ("cheat-operator", "cheat-rti", "cheat-solace", "cheat-engine", "cheat-words"),
    "Everyday work": (
        "administration", "samples", "bridge", "tables", "top", "web", "health", "limits", "desired-state", "contexts",
        "completion", "bench",
    ),
    "Configuration": ("configuration", "rti-differences", "client-profiles", "listings", "captures"),
    "The service": (
        "production", "containers", "service", "promises", "high-availability", "master-timeout", "recording",
        "live-tables",
        "programs", "testing",
        "any-dds-application", "dds-administration", "security",
        "state-directory", "backup", "upgrade", "changes", "licenses",
    ),
    "Simulation": (
        "simulation", "keeping-up", "guaranteed-delivery", "modelled", "worlds", "replay", "report",
        "integration-engine", "engine-watch", "engine-site", "spark", "nightly", "lakes",
    ),
    "Questions about queues": (
        "ask-sqs-duplicates", "ask-lambda-timeout", "ask-prefetch-hoarding", "ask-prefetch-rule", "ask-ready-limit",
        "ask-full-dead-letters", "ask-back-off", "ask-ack-wait", "ask-depth", "ask-long-tasks",
    ),
    "Other brokers": tuple(BROKER_PAGES),
    "Reference": tuple(name for name in REFERENCES if name not in BROKER_PAGES),
}  # fmt: skip
MORE: Final = "More"


@dataclass(frozen=True, slots=True)
class Topic:
    """A page: its name as the user types it, its heading, its first sentence, and its group."""

    name: str
    title: str
    summary: str
    group: str


@cache
def topics() -> tuple[Topic, ...]:
    """Return every page, ordered by groups."""
    return tuple(_topics())


def _topics() -> Iterator[Topic]:
    written = {path.stem for path in FOLDER.glob("*.md")}
    named = {name for names in GROUPS.values() for name in names}
    for group, names in {**GROUPS, MORE: tuple(sorted(written - named))}.items():
        for name in names:
            if name in REFERENCES:
                yield Topic(name, REFERENCES[name].title, REFERENCES[name].summary, group)
            elif name in written:
                text = written_page(name)
                yield Topic(name, title_of(text), summary_of(text), group)


def written_page(name: str) -> str:
    """Return the Markdown of a written page."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def page(name: str) -> str:
    """Return the Markdown of a page, written or generated.

    Raises:
        NotFound: there is no page of this name.
    """
    if name in REFERENCES:
        return REFERENCES[name].page()
    if name not in {topic.name for topic in topics()}:
        raise NotFound(f"there is no page {name!r}", remedy="qsctl help lists the pages.")
    return written_page(name)


def title_of(text: str) -> str:
    """Return the heading of a page."""
    return text.partition("\n")[0].removeprefix("# ").strip()


def summary_of(text: str) -> str:
    """Return the first sentence below the heading."""
    paragraphs = (part.strip() for part in text.split("\n\n")[1:])
    first = " ".join(
        next((part for part in paragraphs if part and not part.startswith(("#", "```", "|", "!"))), "").split()
    )
    sentence = re.match(r".*?[.:?!](?=\s|$)", first)
    return (sentence[0] if sentence else first).replace("`", "").rstrip(":")
