"""Rules of the source tree: class names, and circles of imports."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def modules() -> dict[str, ast.Module]:
    """Syntax trees of the source tree by module."""
    trees = {}
    for root in (ROOT, ROOT / "sim"):
        for path in (root / ("streamplace" if root == ROOT else "streamsim")).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            trees[name] = ast.parse(path.read_text())
    return trees


@cache
def imports(module: str) -> frozenset[str]:
    """Modules of the source tree that a module imports: also in functions and for annotations."""
    return frozenset(_imports(module))


def _imports(module: str) -> Iterator[str]:
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [member if member in modules() else node.module for member in members]
        else:
            continue
        yield from (name for name in names if name in modules() and name != module)


def reached(starts: Iterable[str]) -> set[str]:
    """Modules that are imported by some modules, directly or through others."""
    seen: set[str] = set()
    left = list(starts)
    while left:
        module = left.pop()
        if module not in seen:
            seen.add(module)
            left += imports(module)
    return seen


def test_no_class_name_is_defined_twice() -> None:
    where = defaultdict(list)
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(module)
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def test_no_module_imports_itself_through_others() -> None:
    """Imports in functions and for annotations count as well."""
    circular = sorted(module for module in modules() if module in reached(imports(module)))
    assert circular == []
