"""What of a package is reached from its entry points, by imports, names, types and attributes; the rest is dead.

The analysis reads syntax trees only. What it cannot follow it takes for reached: an attribute of an expression whose
class is not known reaches the methods of that name in every class that is reached; so does a word in a string, which
`getattr` may be given. An expression has a class where an annotation, a constructor or the result of a function says
so: then the methods of its ancestors and descendants are reached, and no others of the name.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Key: TypeAlias = tuple[str, str]
"""A module and the name in it; of a method with the class before a dot."""

PASSIVE_DECORATORS: Final = frozenset(
    {"abstractmethod", "asynccontextmanager", "cache", "cached_property", "classmethod", "contextmanager", "dataclass",
     "deleter", "final", "inlined", "inlined_part", "kernel", "lru_cache", "mutable", "overload", "part", "property",
     "appendable", "runtime_checkable", "setter", "staticmethod", "total_ordering", "unique", "wraps"}
)  # fmt: skip
"""Decorators that call nothing of what they decorate, nor enter it anywhere."""

PASSIVE_BASES: Final = frozenset(
    {"ABC", "Enum", "Flag", "Generic", "IntEnum", "IntFlag", "NamedTuple", "Protocol", "StrEnum", "Struct", "TypedDict",
     "IdlStruct", "object", *(name for name, each in vars(builtins).items() if isinstance(each, type)
                              and issubclass(each, BaseException))}
)  # fmt: skip
"""Bases outside of the package that call no method but those with two underscores."""


@dataclass
class Class:
    """A class: its methods by name, its bases, and the types of its attributes."""

    key: Key
    node: ast.ClassDef
    methods: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    bases: list[Key] = field(default_factory=list)
    calls_all: bool = False
    """Whether a base outside may call any method."""
    is_protocol: bool = False
    attributes: dict[str, ast.expr | None] = field(default_factory=dict)
    """Annotations of attributes; None where there are several."""
    constructed: dict[str, tuple[ast.expr, Function]] = field(default_factory=dict)
    """Attributes that get the value of an expression in this method."""


@dataclass
class Module:
    """A module: what its names stand for."""

    name: str
    tree: ast.Module
    is_package: bool
    functions: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    classes: dict[str, Class] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the name here: the module, and the name there, or an empty one for the module itself."""


@dataclass(frozen=True)
class Type:
    """What an expression is: an instance of a class, the class itself, a module, or a function."""

    kind: str
    key: Key


class Program:
    """The modules of a package.

    Args:
        trees: by module name; a package's is its `__init__`.
        packages: the names of those that are packages.
    """

    def __init__(self, trees: Mapping[str, ast.Module], packages: Iterable[str]) -> None:
        packages = set(packages)
        self._resolved: dict[Key, Type | None] = {}
        self.modules = {name: Module(name, tree, name in packages) for name, tree in trees.items()}
        for module in self.modules.values():
            self._read(module)
        self.classes = {each.key: each for module in self.modules.values() for each in module.classes.values()}
        self._descendants: dict[Key, set[Key]] = defaultdict(set)
        for each in self.classes.values():
            self._link(each)
        for key in self.classes:
            for ancestor in self.ancestors(key):
                self._descendants[ancestor].add(key)

    def definitions(self) -> Iterator[Key]:
        """Yield every function, class and method; not those inside of functions, nor methods with two underscores."""
        for module in self.modules.values():
            yield from ((module.name, name) for name in module.functions if not _is_special(name))
            for each in module.classes.values():
                yield each.key
                yield from ((module.name, f"{each.node.name}.{name}") for name in each.methods if not _is_special(name))

    def ancestors(self, key: Key) -> Iterator[Key]:
        """Yield a class and what it is derived from."""
        yield key
        for base in self.classes[key].bases:
            yield from self.ancestors(base)

    def family(self, key: Key) -> set[Key]:
        """Return a class with its ancestors and descendants."""
        return {*self.ancestors(key), *self._descendants[key]}

    def resolve(self, module: str, name: str) -> Type | None:
        """Return what a name of a module stands for; None: nothing of the package."""
        key = (module, name)
        if key not in self._resolved:
            self._resolved[key] = None  # where imports go in a circle
            self._resolved[key] = self._found(module, name)
        return self._resolved[key]

    def _found(self, module: str, name: str) -> Type | None:
        found = self.modules.get(module)
        if found is None:
            return None
        if name in found.classes:
            return Type("class", (module, name))
        if name in found.functions:
            return Type("function", (module, name))
        if name in found.imports:
            source, there = found.imports[name]
            if there and (whole := self.resolve(source, there)) is not None:
                return whole
            inner = f"{source}.{there}" if there else source
            return Type("module", (inner, "")) if inner in self.modules else None
        return Type("module", (f"{module}.{name}", "")) if f"{module}.{name}" in self.modules else None

    def annotated(self, module: str, annotation: ast.expr | None) -> Type | None:
        """Return the class that an annotation names alone, or beside None."""
        match annotation:
            case ast.Constant(value=str(text)):
                try:
                    return self.annotated(module, ast.parse(text, mode="eval").body)
                except SyntaxError:
                    return None
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
                return self.annotated(module, left)
            case ast.Name(id=name):
                found = self.resolve(module, name)
            case ast.Attribute(value=ast.Name(id=holder), attr=name):
                base = self.resolve(module, holder)
                found = self.resolve(base.key[0], name) if base is not None and base.kind == "module" else None
            case _:
                return None
        if (
            found is None
            or found.kind != "class"
            or any(self.classes[k].is_protocol for k in self.ancestors(found.key))
        ):
            return None
        return Type("instance", found.key)

    def _read(self, module: Module) -> None:
        for statement in _statements(module.tree.body):
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    module.functions[statement.name].append(statement)
                case ast.ClassDef():
                    module.classes[statement.name] = _class_of(module, statement)
        for statement in _inner_statements(module.tree.body):
            for name, source, there in _imported(module, statement):
                module.imports.setdefault(name, (source, there))

    def _link(self, each: Class) -> None:
        for base in each.node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            name = plain.id if isinstance(plain, ast.Name) else plain.attr if isinstance(plain, ast.Attribute) else ""
            found = self.resolve(each.key[0], name) if isinstance(plain, ast.Name) else None
            if isinstance(plain, ast.Attribute) and isinstance(plain.value, ast.Name):
                holder = self.resolve(each.key[0], plain.value.id)
                found = self.resolve(holder.key[0], name) if holder is not None and holder.kind == "module" else None
            if found is not None and found.kind == "class":
                each.bases.append(found.key)
            elif name not in PASSIVE_BASES:
                each.calls_all = True
            each.is_protocol |= name == "Protocol"


class Reach:
    """What is reached of a program; `add` entry points, then `follow`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.reached: set[Key] = set()
        self.modules: set[str] = set()
        self._values: set[str] = set()
        """Modules that are handed around: their functions are used by name."""
        self._attributes: set[str] = set()
        """Names of attributes of expressions of an unknown class."""
        self._called: dict[Key, set[str]] = defaultdict(set)
        self._work: list[tuple[str, ast.AST, Key | None, Function | None]] = []

    def add_module(self, name: str) -> None:
        """Let a module be imported, and the packages that it is in."""
        while name:
            if name in self.program.modules and name not in self.modules:
                self.modules.add(name)
                module = self.program.modules[name]
                for statement in module.tree.body:
                    self._work.append((name, statement, None, None))
                for functions in module.functions.values():
                    for function in functions:
                        if _is_entered(function) or _is_special(function.name):
                            self.add((name, function.name))
            name = name.rpartition(".")[0]

    def add(self, key: Key) -> None:
        """Let a function, class or method be used."""
        if key in self.reached:
            return
        self.reached.add(key)
        module = self.program.modules[key[0]]
        self.add_module(key[0])
        owner, _, method = key[1].rpartition(".")
        if owner:
            self._work += [(key[0], each, (key[0], owner), each) for each in module.classes[owner].methods[method]]
        elif key[1] in module.classes:
            each = module.classes[key[1]]
            self._work += [(key[0], part, key, None) for part in [*each.node.body, *each.node.bases]]
            self._work += [(key[0], part.value, key, None) for part in each.node.keywords]
        else:
            self._work += [(key[0], each, None, each) for each in module.functions[key[1]]]

    def add_everything(self, module: str) -> None:
        """Let a module's `__all__` be used, with the public methods of its classes."""
        for statement in self.program.modules[module].tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names) | ast.Tuple(elts=names)):
                    for each in names:
                        self.add_public(module, str(each.value) if isinstance(each, ast.Constant) else "")
        self.add_module(module)

    def add_public(self, module: str, name: str) -> None:
        """Let a name be used as users do: all of its public methods, those of its ancestors included."""
        found = self.program.resolve(module, name)
        if found is None or found.kind == "module":
            return
        self.add(found.key)
        if found.kind == "class":
            for key in self.program.ancestors(found.key):
                self._called[key].update(each for each in self.program.classes[key].methods if not each.startswith("_"))

    def follow(self) -> set[Key]:
        """Return all that is reached."""
        while True:
            while self._work:
                module, node, owner, function = self._work.pop()
                _Walk(self, module, owner, function).visit_part(node)
            for key, each in self.program.classes.items():
                if key not in self.reached:
                    continue
                for name in each.methods:
                    method = (key[0], f"{key[1]}.{name}")
                    if method not in self.reached and self._is_called(key, each, name):
                        self.add(method)
            for module in self._values:
                for name in self.program.modules[module].functions.keys() & self._attributes:
                    self.add((module, name))
            if not self._work:
                return self.reached

    def use_as_value(self, module: str) -> None:
        """Let a module be handed around."""
        self.add_module(module)
        self._values.add(module)

    def _is_called(self, key: Key, each: Class, name: str) -> bool:
        return (
            _is_special(name) or name in self._attributes or name in self._called[key]
            or any(self.program.classes[base].calls_all for base in self.program.ancestors(key))
            or any(_is_entered(method) for method in each.methods[name])
        )  # fmt: skip

    def call(self, key: Key, name: str) -> None:
        """Let an attribute of a class's instance be used."""
        for each in self.program.family(key):
            self._called[each].add(name)

    def call_any(self, name: str) -> None:
        """Let an attribute of something unknown be used."""
        self._attributes.add(name)


class _Walk(ast.NodeVisitor):
    """A walk through a part of a module: a statement, or a function with those inside of it."""

    def __init__(self, reach: Reach, module: str, owner: Key | None, function: Function | None) -> None:
        self._reach = reach
        self._program = reach.program
        self._module = module
        self._owner = owner
        self._function = function
        self._types: dict[str, Type | None] = {}
        if function is not None:
            self._types = _argument_types(self._program, module, owner, function)
            self._bind_assigned(function)

    def visit_part(self, node: ast.AST) -> None:
        """Walk through a node; of a function or class that is found on the way only what surrounds its body."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not self._function:
            self._around(node)
        elif isinstance(node, ast.ClassDef):
            for each in node.decorator_list:
                self.visit(each)
        else:
            self.visit(node)

    def _around(self, node: Function) -> None:
        for each in [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(each)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._reach.add_module(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for _, source, there in _imported(self._program.modules[self._module], node):
            self._reach.add_module(source)
            if f"{source}.{there}" in self._program.modules:
                self._reach.add_module(f"{source}.{there}")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for each in node.orelse:
                self.visit(each)
            return
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        found = self._program.resolve(self._module, node.id)
        if found is not None and node.id not in self._types:
            if found.kind == "module":
                self._reach.use_as_value(found.key[0])
            else:
                self._reach.add(found.key)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        base = self.type_of(node.value)
        if base is None or base.kind != "module":
            self.visit(node.value)
        if base is None:
            self._reach.call_any(node.attr)
        elif base.kind == "module":
            found = self._program.resolve(base.key[0], node.attr)
            if found is not None and found.kind != "module":
                self._reach.add(found.key)
        elif base.kind in ("instance", "class"):
            self._reach.call(base.key, node.attr)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(), *_]):
                pass
            case ast.Call(func=ast.Name(id="getattr")) if self._owner is not None:
                # By a name that is worked out, such as one of its own attributes.
                owner = self._program.classes[self._owner]
                for name in {*owner.attributes, *owner.constructed}:
                    self._reach.call_any(name)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            for word in node.value.split(":")[:2] if len(node.value) < 120 else ():
                if word in self._program.modules:
                    self._reach.add_module(word)
                elif word.isidentifier():
                    self._reach.call_any(word)
                    if (found := self._program.resolve(self._module, word)) is not None and found.kind != "module":
                        self._reach.add(found.key)  # a type in quotation marks
                elif (place := word.rpartition("."))[0] in self._program.modules:
                    self._reach.add_public(place[0], place[2])

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self.visit(node.value)

    def type_of(self, node: ast.expr) -> Type | None:
        """Return what an expression is; None where that is not known."""
        match node:
            case ast.Name(id=name):
                if name in self._types:
                    return self._types[name]
                return self._program.resolve(self._module, name)
            case ast.Attribute(value=value, attr=name):
                base = self.type_of(value)
                return None if base is None else self._member(base, name)
            case ast.Call(func=ast.Name(id="super")) if self._owner is not None:
                return Type("instance", self._owner)
            case ast.Call(func=func):
                called = self.type_of(func)
                return None if called is None else self._result(called)
            case ast.NamedExpr(value=value):
                return self.type_of(value)
            case _:
                return None

    def _member(self, base: Type, name: str) -> Type | None:
        if base.kind == "module":
            return self._program.resolve(base.key[0], name)
        if base.kind == "function":
            return None
        for key in self._program.ancestors(base.key):
            each = self._program.classes[key]
            if name in each.methods:
                method = each.methods[name][0]
                if any(_last_name(d) in ("property", "cached_property") for d in method.decorator_list):
                    return self._program.annotated(key[0], method.returns)
                return Type("function", (key[0], f"{key[1]}.{name}"))
            if name in each.attributes:
                return self._program.annotated(key[0], each.attributes[name])
            if name in each.constructed:
                value, method = each.constructed[name]
                return _Walk(self._reach, key[0], key, None)._typed_in(value, method)
        return None

    def _typed_in(self, value: ast.expr, method: Function) -> Type | None:
        arguments = {each.arg: each.annotation for each in _arguments(method)}
        match value:
            case ast.Name(id=name) if name in arguments:
                return self._program.annotated(self._module, arguments[name])
            case ast.Call(func=ast.Name(id=name)) if name not in arguments:
                called = self._program.resolve(self._module, name)
                return None if called is None else self._result(called)
            case _:
                return None

    def _result(self, called: Type) -> Type | None:
        if called.kind == "class":
            is_protocol = any(self._program.classes[key].is_protocol for key in self._program.ancestors(called.key))
            return None if is_protocol else Type("instance", called.key)
        if called.kind != "function":
            return None
        module, name = called.key
        owner, _, method = name.rpartition(".")
        found = self._program.modules[module]
        functions = found.classes[owner].methods[method] if owner else found.functions[name]
        if any(isinstance(each, ast.AsyncFunctionDef) or _is_generator(each) for each in functions):
            return None
        return self._program.annotated(module, functions[-1].returns)

    def _bind_assigned(self, function: Function) -> None:
        """Give the local names that are assigned once, and bound in no other way, their types.

        What is declared keeps its type whatever it is assigned: the package is typed strictly.
        """
        declared: dict[str, Type | None] = {}
        assigned: dict[str, list[ast.expr]] = defaultdict(list)
        stores: dict[str, int] = defaultdict(int)
        inner: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                stores[node.id] += isinstance(node.ctx, ast.Store)
            elif isinstance(node, ast.Assign | ast.NamedExpr):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name):
                    assigned[target.id].append(node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                declared[node.target.id] = self._program.annotated(self._module, node.annotation)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not function:
                inner |= {node.name, *(each.arg for each in _arguments(node))}
            elif isinstance(node, ast.Lambda):
                inner |= {each.arg for each in node.args.args}
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                inner.add(node.name)
        arguments = {each.arg for each in _arguments(function)}
        for name in [name for name, count in stores.items() if count and name not in arguments]:
            found = None
            if name in declared:
                found = declared[name]
            elif stores[name] == len(assigned[name]) == 1:
                found = self.type_of(assigned[name][0])
            self._types[name] = found if found is not None and found.kind == "instance" else None
        self._types |= dict.fromkeys(inner)


def _argument_types(program: Program, module: str, owner: Key | None, function: Function) -> dict[str, Type | None]:
    types: dict[str, Type | None] = {}
    for each in _arguments(function):
        types[each.arg] = program.annotated(module, each.annotation)
    if owner is not None and function.args.args and not any(
        _last_name(each) == "staticmethod" for each in function.decorator_list
    ):  # fmt: skip
        is_protocol = any(program.classes[key].is_protocol for key in program.ancestors(owner))
        types[function.args.args[0].arg] = None if is_protocol else Type("instance", owner)
    return types


def _arguments(function: Function) -> list[ast.arg]:
    args = function.args
    plain = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    starred = [ast.arg(each.arg) for each in (args.vararg, args.kwarg) if each is not None]
    return plain + starred


def _class_of(module: Module, node: ast.ClassDef) -> Class:
    made = Class((module.name, node.name), node)
    for statement in _statements(node.body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                made.methods[statement.name].append(statement)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                made.attributes[name] = annotation
    for methods in made.methods.values():
        for method in methods:
            for each in _inner_statements(method.body):
                match each:
                    case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=found):
                        made.attributes[name] = found
                    case ast.Assign(targets=targets, value=value):
                        for target in targets:
                            if isinstance(target, ast.Attribute):
                                _note_assigned(made, target, value, method, len(targets))
                            elif isinstance(target, ast.Tuple):
                                for inner in target.elts:
                                    if isinstance(inner, ast.Attribute):
                                        _note_assigned(made, inner, value, method, 2)
    return made


def _note_assigned(made: Class, target: ast.Attribute, value: ast.expr, method: Function, count: int) -> None:
    name = target.attr
    if not (isinstance(target.value, ast.Name) and target.value.id == "self") or name in made.attributes:
        return
    if name in made.constructed or count > 1:
        made.constructed.pop(name, None)
        made.attributes[name] = None
    else:
        made.constructed[name] = (value, method)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, those under a condition or in a `try` included."""
    for each in body:
        yield each
        if isinstance(each, ast.If | ast.Try | ast.With):
            yield from _statements(each.body)
            for handler in getattr(each, "handlers", ()):
                yield from _statements(handler.body)
            yield from _statements(getattr(each, "orelse", ()))


def _inner_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements with all those inside of them."""
    for each in body:
        yield each
        for inner in ("body", "orelse", "finalbody"):
            yield from _inner_statements(getattr(each, inner, ()))
        for part in (*getattr(each, "handlers", ()), *getattr(each, "cases", ())):
            yield from _inner_statements(part.body)


def _imported(module: Module, node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield what a statement imports: the name here, the module, and the name there."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name, "") if alias.asname else (*[alias.name.partition(".")[0]] * 2, "")
    elif isinstance(node, ast.ImportFrom):
        source = node.module or ""
        if node.level:
            package = module.name.split(".")
            package = package[: len(package) - node.level + module.is_package]
            source = ".".join([*package, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, source, alias.name


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_entered(function: Function) -> bool:
    """Whether a decorator may call a function, or enter it into a table."""
    return any(_last_name(each) not in PASSIVE_DECORATORS for each in function.decorator_list)


@cache
def _is_generator(function: Function) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(function))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
