"""Words of one meaning wherever a user reads: pages, the reference, schemas, and the messages of the program.

The glossary of `qsctl/README.md` has what each word means. Nothing here tells, says or settles: it reports, states,
shows, or is acknowledged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from qsctl.cli.help.topics import page, topics
from tests.documents import README, ROOT

LOOSE = re.compile(r"\b(tells?|told|says?|said|nobody|somebody|whoever|whom|settle[ds]?|under way|put off)\b", re.I)
MODULES = sorted((ROOT / "qsctl").rglob("*.py"))
SCHEMAS = sorted((ROOT / "schemas").glob("*.xsd"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("topic", [*(topic.name for topic in topics()), "README"])
def test_a_page_is_in_words_of_one_meaning(topic: str) -> None:
    text = README if topic == "README" else page(topic)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)  # what commands print is tested elsewhere
    text = re.sub(r"`[^`]*`", "", text)
    assert [line for line in text.splitlines() if LOOSE.search(line)] == []


@pytest.mark.parametrize("path", SCHEMAS, ids=name)
def test_a_schema_explains_in_words_of_one_meaning(path: Path) -> None:
    texts = [" ".join(each.itertext()) for each in etree.parse(str(path)).iter("{*}documentation")]
    assert [text for text in texts if LOOSE.search(text)] == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_message_is_in_words_of_one_meaning(path: Path) -> None:
    """Texts that are no docstring and no condition of an `assert` may reach a user."""
    assert [text for text in messages(ast.parse(path.read_text(encoding="utf-8"))) if LOOSE.search(text)] == []


def messages(tree: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(tree):
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if is_docstring or isinstance(child, ast.Assert):
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from messages(child)
