"""The wheel holds nothing that its public names and commands cannot reach.

The source is read, not run. Where the way begins: the names that `plait` exports, its commands,
the public names of `plait.testing`, and what `python -m` may start. From there it follows imports
(also those inside functions, and the tables of names that are imported when they are asked for),
and within a module from each definition to the names that it mentions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import plait

pytestmark = pytest.mark.slow
PRODUCT = Path(plait.__file__).parent
ENTRIES = ("plait", "plait.__main__", "plait.testing", "plait.kernels.warm")
"""Modules that are entered from outside: imports, `python -m`, and the script `plait`."""

PUBLIC = ("plait.testing", "plait.errors")
"""Packages and modules whose public names are entered from outside, too."""

_PAPER = "an equation of the paper: tests compare what Plait uses with it"
_FORM = "the same in another form: text or one item, which tests and the laboratory use"
KEPT = {
    "plait.local.observe.live_tuples": "counts for the benchmark of the cost model",
    "plait.machine.drafts.abandon_drafts": "`plait.cli` calls it if the module was loaded",
    "plait.node.reports.work.STATE": "names fields of reports",
    "plait.optimize.migration_cost.equation_1": _PAPER,
    "plait.optimize.migration_cost.equation_8": _PAPER,
    "plait.optimize.migration_cost.new_output_rate": _PAPER,
    "plait.optimize.migration_cost.output_rate": _PAPER,
    "plait.optimize.migration_cost.state_size": _PAPER,
    "plait.optimize.migration_cost.t_moving_state": _PAPER,
    "plait.optimize.search.jtree_finder.PLANS": "the limit of the exhaustive search",
    "plait.optimize.search.jtree_finder.jtree_finder": "the exhaustive search of the paper",
    "plait.optimize.statistics.load_statistics": _FORM,
    "plait.plan.serde.dumps": _FORM,
    "plait.plan.serde.loads": _FORM,
    "plait.query.bounds.Matrix": "the type of bounds",
    "plait.query.sql.outputs.parse_output": _FORM,
    "plait.query.sql.statement.parse_query": _FORM,
    "plait.sites.planner.cost.paper_setting": "the setting that doctests of sites use",
    "plait.sites.plans.legs.example_sites": "the sites that doctests use",
    "plait.sites.plans.plan.fully_connected": "the sites that doctests use",
    "plait.spark.balance.moves.moves_of": "a second way to the moves of a query",
}
"""Definitions that nothing in the product mentions, with the reason why they are in the wheel."""

Place = tuple[str, str]


@dataclass
class Module:
    """One module: its statements, its definitions, and what its names stand for."""

    name: str
    path: Path
    tree: ast.Module
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    @property
    def package(self) -> str:
        return self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(PRODUCT.rglob("*.py")):
        parts = ("plait", *path.relative_to(PRODUCT).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    for module in found.values():
        for node in module.tree.body:
            for name in _defined(node):
                module.definitions.setdefault(name, []).append(node)
        module.imports = dict(_bound(module.tree.body, found))
    return found


def _defined(node: ast.stmt) -> list[str]:
    """The names of a definition that does nothing until somebody uses it."""
    if isinstance(node, ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.FunctionDef) and not any(
        ast.unparse(d).startswith("app.") for d in node.decorator_list
    ):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name) and not _is_dunder(t.id)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _bound(
    nodes: Iterable[ast.AST], modules: dict[str, Module]
) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Names bound by imports: to a module, or to a name in one."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.ImportFrom) and node.module in modules and not node.level:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    bound = (inner, None) if inner in modules else (node.module, alias.name)
                    yield alias.asname or alias.name, bound
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in modules:
                        name = alias.asname or alias.name.partition(".")[0]
                        yield name, (alias.name if alias.asname else name, None)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@dataclass
class Walk:
    """What has been reached so far."""

    modules: dict[str, Module]
    executed: set[str] = field(default_factory=set)
    used: set[Place] = field(default_factory=set)
    open: list[tuple[Module, ast.AST]] = field(default_factory=list)

    def execute(self, name: str) -> None:
        """Reach a module: its package's statements and its own."""
        if name in self.executed or name not in self.modules:
            return
        self.executed.add(name)
        self.execute(name.rpartition(".")[0])
        module = self.modules[name]
        for node in module.tree.body:
            if not _is_for_types(node) and not _defined(node):
                self.open.append((module, node))

    def use(self, module: str, name: str) -> None:
        """Reach a name of a module, wherever it is defined."""
        if (module, name) in self.used or module not in self.modules:
            return
        self.used.add((module, name))
        self.execute(module)
        here = self.modules[module]
        for node in here.definitions.get(name, ()):
            self.open.append((here, node))
        if name not in here.definitions and name in here.imports:
            where, what = here.imports[name]
            if what is not None and (where, what) != (module, name):
                self.use(where, what)
        for node in here.tree.body:  # a table of lazy names
            if name not in here.definitions and isinstance(node, ast.Assign):
                self._look_up(node.value, name)

    def _look_up(self, node: ast.expr, name: str) -> None:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    self.use(str(getattr(value, "value", "")), name)

    def finish(self) -> None:
        while self.open:
            module, node = self.open.pop()
            self._read(module, node)

    def _read(self, module: Module, root: ast.AST) -> None:
        """Follow every name, attribute, import and module name in a piece of source."""
        local = {**module.imports, **dict(_bound([root], self.modules))}
        for node in ast.walk(root):
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                self.execute(node.module)
                for alias in node.names:
                    self.execute(f"{node.module}.{alias.name}")
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self.execute(alias.name)
            elif isinstance(node, ast.Name):
                if node.id in local:
                    where, what = local[node.id]
                    if what is not None:
                        self.use(where, what)
                elif node.id in module.definitions:
                    self.use(module.name, node.id)
            elif isinstance(node, ast.Attribute):
                self._attribute(node, local)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.execute(node.value)
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(value, ast.Constant) and isinstance(key, ast.Constant):
                        self.use(str(value.value), str(key.value))

    def _attribute(self, node: ast.Attribute, local: dict[str, tuple[str, str | None]]) -> None:
        inner: list[str] = []
        value = node.value
        while isinstance(value, ast.Attribute):
            inner.insert(0, value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in local and local[value.id][1] is None:
            self.use(".".join((local[value.id][0], *inner)), node.attr)


@pytest.fixture(scope="module")
def reached(modules: dict[str, Module]) -> Walk:
    walk = Walk(modules)
    for name in ENTRIES:
        walk.execute(name)
        assert name in modules, f"{name} is no module"
    walk.use("plait.cli", "main")
    for name in plait.__all__:
        walk.use("plait", name)
    for name, module in modules.items():
        if name in PUBLIC or name.startswith("plait.testing."):
            for defined in module.definitions:
                if not defined.startswith("_"):
                    walk.use(name, defined)
    for name in ("plait.spark", "plait.sites", "plait.testing"):  # their lazy tables
        walk.open.extend((modules[name], node) for node in modules[name].tree.body)
    walk.finish()
    return walk


def test_every_module_is_reached(modules: dict[str, Module], reached: Walk) -> None:
    assert len(modules) > 200, "the product is there"
    assert sorted(set(modules) - reached.executed) == []


def test_every_function_class_and_constant_is_reached(
    modules: dict[str, Module], reached: Walk
) -> None:
    lost = {
        f"{module.name}.{name}"
        for module in modules.values()
        for name in module.definitions
        if (module.name, name) not in reached.used and not _is_dunder(name)
    }
    extra = "\n".join(sorted(lost - set(KEPT)))
    assert not extra, f"delete these, or move them to the laboratory:\n{extra}"
    there = {f"{m.name}.{name}" for m in modules.values() for name in m.definitions}
    assert sorted(set(KEPT) & there - lost) == [], "these are reached now"
