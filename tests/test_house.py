"""Rules of the source tree: class names, and circles of imports."""

import ast
from collections import defaultdict
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]


def test_no_class_name_is_defined_twice():
    where = defaultdict(list)
    for folder in ("streamplace", "sim/streamsim"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    where[node.name].append(path)
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def test_no_module_imports_itself_through_others():
    """Imports in functions and for annotations count as well."""
    graph = grimp.build_graph("streamplace", "streamsim", cache_dir=None)
    circular = [
        module
        for module in sorted(graph.modules)
        for imported in graph.find_modules_directly_imported_by(module)
        if graph.chain_exists(importer=imported, imported=module)
    ]
    assert circular == []
