"""The repository read as text: no leftovers, nothing that only holds on one machine."""

from __future__ import annotations

import ast
import functools
import gc
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeAlias

import pytest
from lxml import etree

from qsctl.cli.app import COMMAND_MODULES, module_path
from qsctl.cli.help.topics import page, topics
from tests.documents import README
from tests.reachability import Program, Reach

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


@functools.cache
def nodes_of(path: Path) -> Sequence[ast.AST]:
    return tuple(ast.walk(tree_of(path)))


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """They are kept for this file alone: they are large, and no garbage is looked for in them."""
    gc.disable()
    for path in MODULES:
        nodes_of(path)
    gc.freeze()
    gc.enable()
    yield
    tree_of.cache_clear()
    nodes_of.cache_clear()


def test_each_change_is_a_fragment_of_a_known_kind_with_a_sentence() -> None:
    fragments = [path for path in FILES if path.parent.name == ".changes" and path.suffix == ".md"]
    named = re.compile(r"(\d+|\+[a-z0-9-]+)(\.\d+)?\.(incompatible|new|fixed)\.md")
    # none is left when a release was made
    assert [name(path) for path in fragments if not named.fullmatch(path.name)] == []
    assert [name(path) for path in fragments if not text_of(path).rstrip().endswith(".")] == []


def test_no_leftovers() -> None:
    leftover = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|assert True\b|breakpoint\(\)")
    assert [name(path) for path in SOURCES if path != Path(__file__) and leftover.search(text_of(path))] == []


def test_no_file_is_left_of_a_merge() -> None:
    assert [name(path) for path in FILES if path.suffix in {".orig", ".rej", ".bak"} or path.name.endswith("~")] == []


def test_the_top_level_is_the_agreed_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES if not name(path).startswith(".")} == TOP_LEVEL


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def entered(program: Program) -> Reach:
    """What is reached from where qsctl is entered: its commands, its pages, its processes, and what programs import."""
    from qsctl.cli.app import COMMAND_MODULES, module_path
    from qsctl.cli.help.reference import REFERENCES

    reach = Reach(program)
    reach.add_public("qsctl.__main__", "main")
    for module in (*COMMANDS_OF_PROCESSES, *map(module_path, COMMAND_MODULES)):
        reach.add_module(module)
    for reference in REFERENCES.values():
        reach.add_public(f"qsctl.cli.help.reference.{reference.module}", "page")
    for package in PUBLIC:
        reach.add_everything(package)
    for module, names in CALLED_FROM_OUTSIDE.items():
        for each in names:
            reach.add_public(module, each)
    return reach


PUBLIC = (
    "qsctl",
    "qsctl.client",
    "qsctl.client.aio",
    "qsctl.client.tracing",
    "qsctl.testing",
    "qsctl.testing.strategies",
    "qsctl.summary",
)
"""Packages whose `__all__` programs import: the docstring of `qsctl` lists them."""

COMMANDS_OF_PROCESSES = (
    "qsctl.sim.ready_kernels",
    "qsctl.__main__",
    "qsctl.service.recording._recorder",
    "qsctl.programs._served_process",
    "qsctl.summary.spark.found_by_name",  # Spark imports it, as the module pyspark_qsctl of an installation
)
"""Modules that a process is started with."""

CALLED_FROM_OUTSIDE = {
    # `qsctl.Service`, the functions beside it and what they return, which `qsctl` looks up when they are first used.
    "qsctl.programs.service": {"Service"},
    "qsctl.programs.configuration": {"validate", "render", "diff"},
    "qsctl.programs.explanation": {"explain"},
    "qsctl.programs.reporting": {"write_report"},
    "qsctl.programs.simulation": {"simulate"},
    "qsctl.programs.simulated_run": {"SimulatedRun"},
    "qsctl.programs.sweep_result": {"SweepResult"},
    "qsctl.programs.studies": {"sweep", "size", "compare", "replay", "what_if"},
    "qsctl.programs.lake": {"lake_rows"},
    "qsctl.programs.loaded": {"load", "LoadedFolder", "LoadedTable"},
    "qsctl.programs.command_result": {"CommandResult"},
    "qsctl.programs.consumed_sample": {"ConsumedSample"},
    "qsctl.summary.spark.data_source": {"QsctlDataSource"},  # a program registers it with its own Spark session
    # pytest finds it by its entry point.
    "qsctl.testing.plugin": {"pytest_configure", "qsctl_service", "qsctl_session_service"},
    "qsctl.core.selector._build": {"SelectorBuilder"},  # lark, by the names of the grammar's rules
}
STILL_THERE = {
    # The campaigns of `tests/world` count the faults of a run by it.
    "qsctl.sim.world.results.verdict: JudgedWorld.done_counts",
}


def dead_in(program: Program, reach: Reach) -> set[str]:
    reached = reach.follow()
    return {f"{module}: {each}" for module, each in program.definitions() if (module, each) not in reached} | {
        module for module in program.modules if module not in reach.modules
    }


def test_nothing_is_reached_by_tests_alone() -> None:
    """Follow imports, calls and attributes from the entry points: see `tests/reachability.py`."""
    packages = [module_name(path) for path in MODULES if path.stem == "__init__"]
    program = Program({module_name(path): tree_of(path) for path in MODULES}, packages)
    assert dead_in(program, entered(program)) == STILL_THERE


PLANTED = {
    "p": "",
    "p.main": """
from p import plugins
from p.live import Base, Seen, made, read

def main():
    made().begin()
    seen = Seen(made())
    seen.go()
    read(seen)
    for each in plugins.ENTERED:
        each.run()
""",
    "p.live": """
from typing import Protocol
from p.tables import entered

class Base:
    def begin(self) -> None:
        self.end()
    def end(self) -> None: ...
    def stop(self) -> None: ...

class Derived(Base):
    def end(self) -> None: ...
    def unused(self) -> None: ...

class Other:
    def begin(self) -> None: ...
    def stop(self) -> None: ...

class Port(Protocol):
    def take(self) -> int: ...

class Seen:
    def __init__(self, base: Base) -> None:
        self._base = base
    def go(self) -> None:
        self._base.stop()
    def take(self) -> int:
        return helper()

def read(port: Port) -> int:
    return port.take()

def made() -> Base:
    return Derived()

def helper() -> int:
    return getattr(Other(), "word")

def unused() -> None:
    only_from_unused()

def only_from_unused() -> None: ...

@entered
def in_a_table() -> None: ...
""",
    "p.tables": "def entered(function): return function",
    "p.plugins": """
class Plugin:
    def run(self): ...
    def never(self): ...
ENTERED = [Plugin()]
""",
    "p.alone": "def of_no_one(): ...",
}


def test_a_planted_function_method_and_module_are_found_dead() -> None:
    """A method of a name that another class has is dead, too, where the class of what is called is known."""
    program = Program({name: ast.parse(text) for name, text in PLANTED.items()}, ["p"])
    reach = Reach(program)
    reach.add_public("p.main", "main")
    assert dead_in(program, reach) == {
        "p.alone", "p.alone: of_no_one", "p.live: unused", "p.live: only_from_unused", "p.live: Derived.unused",
        "p.live: Other.begin", "p.live: Other.stop", "p.plugins: Plugin.never",
    }  # fmt: skip


def test_every_module_has_a_docstring() -> None:
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
    Consumers try a program's handler again, whatever it raises, and reject the sample in the end.
    What a thread of a wrapper raises is raised again where its block ends.
    A thread that simulates for a page goes on to the next question.
    """
    edges = {
        "qsctl/cli/app.py",
        "qsctl/cli/_completers.py",
        "qsctl/client/_attempts.py",
        "qsctl/client/_background.py",
        "qsctl/client/consumer.py",
        "qsctl/config/sample_types/types.py",
        "qsctl/web/_what_if_answerer.py",
        "qsctl/service/process/daemon.py",
        "qsctl/testing/_running_service.py",
        "qsctl/transport/dds/boundary.py",
    }
    caught = {
        name(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    }
    assert caught <= edges


def test_only_the_renderer_prints() -> None:
    printers = {
        name(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printers <= {"qsctl/cli/output/render.py"}


def test_nothing_replaces_the_streams_of_all_threads() -> None:
    replacing = {
        name(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in {"redirect_stderr", "redirect_stdout"}
    }
    assert not replacing, "give notes to `notes_go_to` instead"


TIMED = re.compile(
    r"^\s*assert .*\b(?:monotonic|process_time|perf_counter|thread_time)(?:_ns)?\(\) - [\w.\[\]]+ <(?! PATIENCE_S$)",
    re.M,
)
"""An assertion about how long something took: on a busy machine it fails for another reason."""


def test_no_ordinary_test_asserts_how_long_something_took() -> None:
    timed = {
        name(path)
        for path in (ROOT / "tests").rglob("*.py")
        if "benchmarks" not in path.parts and TIMED.search(path.read_text())
    }
    assert not timed, "speed is measured in tests/benchmarks; what might never end has a mark: timeout"


LOOSE = re.compile(r"\b(tells?|told|says?|said|nobody|somebody|whoever|whom|settle[ds]?|under way|put off)\b", re.I)
"""Words that stand for many things, see the glossary of `qsctl/README.md`: a program reports, states, shows."""
OTHERWISE = "beside its file is a word that means too many things; use another, see Words in qsctl/README.md"
SCHEMAS = sorted((ROOT / "schemas").glob("*.xsd"))


def test_pages_are_in_words_of_one_meaning() -> None:
    loose = []
    for topic in (*(topic.name for topic in topics()), "README"):
        text = README if topic == "README" else page(topic)
        text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)  # commands' output is tested elsewhere
        text = re.sub(r"`[^`]*`", "", text)
        loose += [(topic, word, line) for line in text.splitlines() for word in LOOSE.findall(line)]
    assert loose == [], OTHERWISE


def test_schemas_explain_in_words_of_one_meaning() -> None:
    texts = [
        (name(path), " ".join(each.itertext()))
        for path in SCHEMAS
        for each in etree.parse(str(path)).iter("{*}documentation")
    ]
    assert [(where, word, text) for where, text in texts for word in LOOSE.findall(text)] == [], OTHERWISE


def test_messages_are_in_words_of_one_meaning() -> None:
    """Texts that are no docstring and no condition of an `assert` may reach a user.

    Only the few modules in which such a word occurs at all, if need be across the end of a line, are taken apart.
    """
    suspects = [path for path in MODULES if LOOSE.search(re.sub(r"""[\s"']+f?["']?""", " ", text_of(path)))]
    texts = [(name(path), text) for path in suspects for text in messages(tree_of(path))]
    assert [(where, word, text) for where, text in texts for word in LOOSE.findall(text)] == [], OTHERWISE


def messages(tree: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(tree):
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if is_docstring or isinstance(child, ast.Assert):
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from messages(child)


LOOSE_IN_CODE = re.compile(
    LOOSE.pattern.removesuffix(r"|under way|put off)\b")
    + r"|under[\s#]+way|puts?[\s#]+off|so[\s#]+many|at[\s#]+the[\s#]+most|once[\s#]+more|likewise"
    r"|heed(?:s|ed|ing)?|hears?|heard|hearing|g(?:ive|ives|ave|iving)[\s#]+way|stands?|stood|rides?|rode|riding"
    r"|kn(?:ow|ows|own)[\s#]+of)\b(?!-)",
    re.I,
)
"""Words that readers of the code meet as metaphors, too: a peer receives, a sample is in a queue, the number given."""
NOUN_CLAUSE = re.compile(r"(What|How|Where|When|Who|Which|Whether)\b")


def documentation(path: Path) -> Iterator[str]:
    """Docstrings, texts below a field, and comments, those of successive lines as one."""
    for node in nodes_of(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    latest = 0
    comment = ""
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != latest + 1:
                yield comment
                comment = ""
            comment += f"{token.string}\n"
            latest = token.start[0]
    yield comment


def test_docstrings_and_comments_are_in_words_of_one_meaning() -> None:
    """Only the few modules in which such a word occurs at all are taken apart."""
    suspects = [path for path in MODULES if LOOSE_IN_CODE.search(text_of(path))]
    texts = [(name(path), text) for path in suspects for text in documentation(path)]
    assert [(where, word, text) for where, text in texts for word in LOOSE_IN_CODE.findall(text)] == [], OTHERWISE


def test_names_of_tests_are_in_words_of_one_meaning() -> None:
    tests = re.compile(r"^\s*(?:async )?def (test_\w+)", re.M)
    named = [(path, each) for path in SOURCES if path.name.startswith("test_") for each in tests.findall(text_of(path))]
    assert len(named) > 3000
    texts = [(name(path), each.replace("_", " ")) for path, each in named]
    assert [(where, word, text) for where, text in texts for word in LOOSE_IN_CODE.findall(text)] == [], OTHERWISE


Definition: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def definitions(within: Definition) -> Iterator[Definition]:
    """The module, its classes and functions, and those inside them."""
    yield within
    for each in within.body:
        if isinstance(each, Definition):
            yield from definitions(each)


def test_first_lines_of_docstrings_are_no_noun_clauses() -> None:
    """ "What is left to do." leaves open what is returned; "Return the pending sync." does not."""
    clauses = [
        (name(path), text.partition("\n")[0])
        for path in MODULES
        for each in definitions(tree_of(path))
        if (text := ast.get_docstring(each)) and NOUN_CLAUSE.match(text)
    ]
    assert clauses == []


PLANTED_WORDS = {
    "the sample that the producer was told of": True,
    "# a message waits once\n    # more": True,
    "at most so\nmany octets": True,
    "its peers give way": True,
    "test_nobody_waits": True,
    "the stand-in of a value": False,
    "a settlement of heading and riddles": False,
}


@pytest.mark.parametrize("text", PLANTED_WORDS)
def test_planted_words_are_found(text: str) -> None:
    assert bool(LOOSE_IN_CODE.search(text.replace("_", " "))) == PLANTED_WORDS[text]


def test_planted_docstrings_and_comments_are_read(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text('"""One."""\nx = 1  # two\n"""Three."""\n\n# four\n# five\ny = "six"\n', encoding="utf-8")
    assert [text for text in documentation(planted) if text] == ["One.", "Three.", "# two\n", "# four\n# five\n"]


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


def test_docstrings_describe_and_do_not_refer() -> None:
    """Whoever reads "See `other`." has to go there to learn what this does."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    referring = [
        f"{name(path)}: {each.name}"
        for path in MODULES
        for each in nodes_of(path)
        if isinstance(each, kinds) and (ast.get_docstring(each) or "").startswith("See `")
    ]
    assert referring == []


def test_no_modules_import_each_other() -> None:
    """Imports for types count: what needs another's class as a type cannot be understood without it."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES
    }
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for module, path in modules.items():
        named: set[str] = set()
        for each in nodes_of(path):
            if isinstance(each, ast.Import):
                named.update(alias.name for alias in each.names)
            elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
                inside = [f"{each.module}.{alias.name}" for alias in each.names]
                named.update(name if name in modules else each.module for name in inside)
        sorter.add(module, *((named & modules.keys()) - {module}))
    sorter.prepare()


MODULE_NAME = re.compile(r"\bqsctl(?:\.[A-Za-z_]\w*)+")
IMPORTED_FROM = re.compile(r"^\s*from (qsctl[\w.]*) import (\([^)]*\)|[^\n]*)", re.M)


def modules_named_in(path: Path, homes: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules that a file names in full, in an import, a string or a text."""
    text = text_of(path)
    for each in MODULE_NAME.finditer(text):
        module = each.group()
        while module and module not in homes:
            module = module.rpartition(".")[0]
        yield module
    for package, names in IMPORTED_FROM.findall(text):
        yield from (f"{package}.{each}" for each in re.findall(r"\w+", names))


def test_a_module_that_only_its_package_imports_is_private() -> None:
    homes = {module_name(path): path for path in MODULES}
    users: dict[str, set[Path]] = {module: set() for module in homes}
    pages = [path for path in FILES if path.suffix in {".md", ".pyi", ".yml"} and not name(path).startswith("tests/")]
    programs = [path for path in SOURCES if not name(path).startswith("tests/")]
    for path in (*programs, *pages):
        for module in modules_named_in(path, homes):
            if module in homes and homes[module] != path:
                users[module].add(path)
    for named in COMMAND_MODULES:
        users[module_path(named)].add(ROOT / "qsctl/cli/app.py")
    for module, path in homes.items():
        if path.name in {"__init__.py", "__main__.py"} or path.parent == ROOT / "qsctl":
            continue
        is_used_outside = any(not user.is_relative_to(path.parent) for user in users[module])
        if path.name.startswith("_"):
            assert not is_used_outside, f"{name(path)} is private, and used by {sorted(map(name, users[module]))}"
        else:  # without a user it is loaded by a name that is put together, as pages are, or by an entry point
            assert is_used_outside or not users[module], f"{name(path)} is not private"


def test_a_class_name_is_one_class() -> None:
    """The wrappers and those for tasks are alike on purpose: a program changes its import alone."""
    homes: dict[str, set[str]] = {}
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(name(path))
    doubled = {each: where for each, where in homes.items() if len(where) > 1}
    assert set(doubled) == {"QueueConsumer", "QueueProducer", "QueueReplier", "QueueRequester"}, doubled


FILE_NAME = re.compile(r"`([a-z_][\w/]*\.py)[`:]")

#: Files that a page has its reader write.
READERS_FILES = {"billing.py", "nightly.py"}


def test_files_that_docstrings_and_pages_name_exist() -> None:
    texts = [*MODULES, *(path for path in FILES if path.suffix == ".md" and path.is_relative_to(ROOT / "qsctl"))]
    ends = {"/".join(path.parts[at:]) for path in SOURCES for at in range(1, len(path.parts))}
    missing = {
        f"{name(path)}: {named}"
        for path in texts
        if path.name != "changes.md"
        for named in FILE_NAME.findall(text_of(path))
        if named not in ends and named not in READERS_FILES
    }
    assert not missing


def test_tests_that_docstrings_name_exist() -> None:
    """The pages of design name the test that shows each claim; one that was renamed must be renamed there."""
    definition = re.compile(r"^\s*def (test_\w+)|(?<=/)(test_\w+\.py)$", re.MULTILINE)
    known = {found for path in SOURCES for match in definition.findall(text_of(path) + f"\n{path}") for found in match}
    named = re.compile(r"\btest_\w+(?:\.py)?")
    missing = {
        f"{name(path)}: {each}"
        for path in MODULES
        if "test_" in text_of(path)
        for text in documentation(path)
        for each in named.findall(text)
    }
    assert {each for each in missing if each.partition(": ")[2] not in known} == set()
