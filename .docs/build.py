"""Build the documentation site: `python .docs/build.py FOLDER`, with the extra `docs` installed.

The pages are those of `qsctl help`: the written ones of `qsctl/docs` and the ones made from the code. Here they get a
front page and navigation, and `qsctl help NAME` in a text becomes a link. Every warning of Sphinx is an error, links
from page to page among them.
"""

from __future__ import annotations

import importlib
import re
import shutil
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from sphinx.cmd.build import main as sphinx

from qsctl.cli.help.topics import FOLDER, Topic, page, topics

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
REFERENCE = "python"
PACKAGES = ("qsctl", "qsctl.client", "qsctl.client.aio", "qsctl.summary", "qsctl.testing")
"""Packages whose `__all__` are promised to programs: the page `promises`."""


def main(target: Path) -> int:
    """Build into `target`, and return the exit status of Sphinx."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch)
        shutil.copy(HERE / "conf.py", source)
        shutil.copytree(HERE / "_static", source / "_static")
        if (FOLDER / "pictures").is_dir():
            shutil.copytree(FOLDER / "pictures", source / "pictures")
        names = {topic.name for topic in topics()}
        for name in names:
            (source / f"{name}.md").write_text(with_links(page(name), names - {name}), encoding="utf-8")
        (source / f"{REFERENCE}.rst").write_text(reference(), encoding="utf-8")
        (source / "index.md").write_text(front_page(topics()), encoding="utf-8")
        return sphinx(
            ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(source / ".trees"), scratch, str(target)]
        )


def with_links(text: str, names: set[str]) -> str:
    """Return the page with each `qsctl help NAME` in its sentences as a link to that page."""

    def linked(found: re.Match[str]) -> str:
        return f"[{found[0]}]({found[1]}.md)" if found[1] in names else found[0]

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if at % 2 else re.sub(r"(?<!\[)`qsctl help ([a-z-]+)`", linked, part) for at, part in enumerate(parts)
    )


def front_page(listed: tuple[Topic, ...]) -> str:
    """Return what the site begins with: what README begins with, and all pages by groups."""
    introduction = README.read_text(encoding="utf-8").partition("\n## ")[0]
    introduction = introduction.replace("(qsctl/docs/", "(")
    parts = [introduction]
    for group, topics_of in groupby(listed, key=lambda each: each.group):
        members = list(topics_of)
        tree = "\n".join(each.name for each in members)
        lines = "\n".join(f"- [{each.title}]({each.name}.md): {each.summary}" for each in members)
        parts.append(f"## {group}\n\n{lines}\n\n```{{toctree}}\n:hidden:\n:caption: {group}\n\n{tree}\n```")
    parts.append(f"## Python\n\n- [Python reference]({REFERENCE}.rst): every name that is promised to programs.")
    parts.append(f"```{{toctree}}\n:hidden:\n:caption: Python\n\n{REFERENCE}\n```")
    return "\n\n".join(parts) + "\n"


def reference() -> str:
    """Return the page of the names for programs, from their docstrings."""
    parts = [_heading("Python reference", "="), "The names that programs may use; the page ``promises`` has the rule."]
    for package in PACKAGES:
        module = importlib.import_module(package)
        parts.append(_heading(package, "-"))
        for name in sorted(each for each in module.__all__ if not each.startswith("__")):
            found = getattr(module, name)
            if isinstance(found, type):
                parts.append(f".. autoclass:: {package}.{name}\n   :members:")
            elif callable(found):
                parts.append(f".. autofunction:: {package}.{name}")
            else:
                parts.append(f".. autodata:: {package}.{name}")
    return "\n\n".join(parts) + "\n"


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python .docs/build.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
