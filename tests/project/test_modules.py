"""A module is one concept: a few lines that only one other module needs belong to that one."""

import ast
from collections import Counter
from pathlib import Path
from typing import get_args, get_type_hints

import memory_mcp
from memory_mcp import feature

PACKAGE = Path(memory_mcp.__file__).parent
FEW_LINES = 60
# A command, a page of the dashboard, a program of its own process: what is found by the name of its file.
MOST_SMALL_ONES = 15


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_by(path: Path, known: set[str]) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found = [(node.module or "", alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    return (plain & known) | {whole if (whole := f"{module}.{name}") in known else module for module, name in found}


def test_few_small_modules_have_a_single_importer():
    paths = {name_of(path): path for path in PACKAGE.rglob("*.py")}
    importers = Counter(name for path in paths.values() for name in imported_by(path, set(paths)))
    asked_for_by_name = get_args(get_type_hints(feature.modules.__wrapped__)["name"])
    small = [
        name
        for name, path in paths.items()
        if importers[name] == 1
        and path.name != "__init__.py"
        and path.stem not in asked_for_by_name
        and len(path.read_text(encoding="utf-8").splitlines()) < FEW_LINES
    ]
    assert len(small) <= MOST_SMALL_ONES, small
