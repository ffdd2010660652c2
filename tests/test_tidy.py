"""The repository read as text: no leftovers, nothing that only holds on one machine."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from qsctl.cli.help.topics import page, topics
from tests.documents import README

ROOT = Path(__file__).parent.parent
TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "qsctl", "fixtures", "schemas", "tests", "completions"}


def tracked() -> list[Path]:
    """Files under version control, or all of a tree that came without it."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]


FILES = tracked()
SOURCES = [path for path in FILES if path.suffix == ".py"]
MODULES = [path for path in SOURCES if path.is_relative_to(ROOT / "qsctl")]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """They are kept for this file alone: they are large."""
    yield
    tree_of.cache_clear()


def test_each_change_is_a_fragment_of_a_known_kind_with_a_sentence() -> None:
    fragments = [path for path in FILES if path.parent.name == ".changes" and path.suffix == ".md"]
    named = re.compile(r"(\d+|\+[a-z0-9-]+)(\.\d+)?\.(incompatible|new|fixed)\.md")
    # none is left when a release was made
    assert [name(path) for path in fragments if not named.fullmatch(path.name)] == []
    assert [name(path) for path in fragments if not text_of(path).rstrip().endswith(".")] == []


def test_no_leftovers() -> None:
    leftover = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|assert True\b|breakpoint\(\)")
    assert [name(path) for path in SOURCES if path != Path(__file__) and leftover.search(text_of(path))] == []


def test_the_top_level_is_the_agreed_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES if not name(path).startswith(".")} == TOP_LEVEL


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(tree_of(path))


def test_no_module_is_reached_by_tests_alone() -> None:
    """`DATA_SOURCE` is what a program registers with its own Spark session, `RECORDER` what a service runs."""
    from qsctl.cli.app import COMMAND_MODULES
    from qsctl.cli.help.reference import REFERENCES

    used = {"qsctl.__main__", DATA_SOURCE, RECORDER, *(f"qsctl.cli.{module}" for module in COMMAND_MODULES)}
    used |= {f"qsctl.cli.help.reference.{each.module}" for each in REFERENCES.values()}
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Import):
                used.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                used |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    modules = {module_name(path) for path in MODULES if path.stem != "__init__"}
    assert sorted(modules - used) == []


DATA_SOURCE = "qsctl.summary.data_source"
RECORDER = "qsctl.service.recording.recorder"
CALLED_FROM_OUTSIDE = {
    "qsctl/client/consumer.py": {"is_matched"},  # the public surface
    "qsctl/summary/data_source.py": {"QsctlDataSource"},
    "qsctl/core/selector/build.py": {"any_of", "all_of", "not_"},  # lark, by the names of the grammar's rules
    "qsctl/dumps/lines.py": {"readable", "readinto"},  # io.RawIOBase
    "qsctl/sim/kernel/jit.py": {"on_end", "get_pointer_to_function"},  # numba, about a compilation
}


def test_no_function_or_class_is_reached_by_tests_alone() -> None:
    """By name: one that shares its name with something that is used is not found."""
    used: set[str] = set()
    defined: dict[str, set[str]] = {}
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not any(ast.unparse(each).startswith("COMMANDS.command(") for each in node.decorator_list):
                    defined.setdefault(name(path), set()).add(node.name)
            elif isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                used.add(node.value)  # `getattr`, `__all__`, a type in quotation marks
    unused = {
        f"{place}: {each}"
        for place, names in defined.items()
        for each in names - used - CALLED_FROM_OUTSIDE.get(place, set())
        if not each.startswith("__")
    }
    assert unused == set()


def test_every_module_says_what_it_decides() -> None:
    silent = [name(path) for path in MODULES if not ast.get_docstring(tree_of(path))]
    assert silent == []


def test_nothing_names_a_home_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.])/(work|root|home/[a-z]+)/")
    named = [
        name(path)
        for path in FILES
        if path.suffix in {".py", ".md", ".toml", ".xml", ".xsd", ".txt", ""} and path != Path(__file__)
        and pattern.search(path.read_text(encoding="utf-8", errors="replace"))
    ]  # fmt: skip
    assert named == []


def test_only_the_edges_catch_everything_and_keep_it() -> None:
    """To tidy up and raise again is no catching; the writer thread hands its failure to those who wait for it.

    What goes wrong in a completer would be printed into the line that is being typed.
    The DDS library raises bare `Exception` for octets that are no sample: `types` makes that one error of its own.
    """
    edges = {
        "qsctl/cli/app.py",
        "qsctl/cli/completers.py",
        "qsctl/config/types.py",
        "qsctl/service/daemon.py",
        "qsctl/transport/dds/boundary.py",
    }
    caught = {
        name(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    }
    assert caught <= edges


def test_only_the_renderer_prints() -> None:
    printers = {
        name(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printers <= {"qsctl/cli/output/render.py"}


LOOSE = re.compile(r"\b(tells?|told|says?|said|nobody|somebody|whoever|whom|settle[ds]?|under way|put off)\b", re.I)
"""Words that stand for many things, see the glossary of `qsctl/README.md`: a program reports, states, shows."""
SCHEMAS = sorted((ROOT / "schemas").glob("*.xsd"))


def test_pages_are_in_words_of_one_meaning() -> None:
    loose = []
    for topic in (*(topic.name for topic in topics()), "README"):
        text = README if topic == "README" else page(topic)
        text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)  # commands' output is tested elsewhere
        text = re.sub(r"`[^`]*`", "", text)
        loose += [(topic, line) for line in text.splitlines() if LOOSE.search(line)]
    assert loose == []


def test_schemas_explain_in_words_of_one_meaning() -> None:
    texts = [
        (name(path), " ".join(each.itertext()))
        for path in SCHEMAS
        for each in etree.parse(str(path)).iter("{*}documentation")
    ]
    assert [(where, text) for where, text in texts if LOOSE.search(text)] == []


def test_messages_are_in_words_of_one_meaning() -> None:
    """Texts that are no docstring and no condition of an `assert` may reach a user."""
    assert [(name(path), text) for path in MODULES for text in messages(tree_of(path)) if LOOSE.search(text)] == []


def messages(tree: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(tree):
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if is_docstring or isinstance(child, ast.Assert):
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from messages(child)


def test_no_module_of_tests_imports_another() -> None:
    """What several need is a module of its own: a test module that is imported is collected, or run, for others too."""
    imported = re.compile(
        r"^\s*(?:from|import) (tests(?:\.\w+)*\.test_\w+)|from (tests(?:\.\w+)*\.test_\w+) import", re.M
    )
    tests = [path for path in SOURCES if path.is_relative_to(ROOT / "tests") and path != Path(__file__)]
    importing = {
        f"{name(path)}: {module}"
        for path in tests
        for pair in imported.findall(text_of(path))
        for module in pair
        if module and module != module_name(path)
    }
    assert importing == set()


def test_what_a_campaign_makes_larger_is_marked() -> None:
    """`-m campaign` runs it: its size is asked of `tests.campaigns`."""
    asking = [path for path in SOURCES if path.name.startswith("test_") and "tests.campaigns import" in text_of(path)]
    unmarked = [name(path) for path in asking if "mark.campaign" not in text_of(path) and path != Path(__file__)]
    assert len(asking) > 20
    assert unmarked == []
