"""Leaves out the tests of a feature whose folder is gone: its folder here, what imports it, and what is marked with its name."""

import re
from pathlib import Path

import pytest

from memory_mcp.feature import FOLDER

FEATURES = frozenset("adoption cells chat compat dashboard experience gateway graph pools".split())
_IMPORT = re.compile(r"\bmemory_mcp\.(?:features(?:\.| import )(\w+)|(chat)\b)")
_BESIDE = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out the folder of an absent feature, and modules that import one, themselves or by a module beside this one."""
    if collection_path.parent.name == FOLDER.name and collection_path.name in FEATURES and not _is_there(collection_path.name):
        return True
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    beside = [Path(__file__).with_name(f"{name}.py") for name in _BESIDE.findall(text)]
    texts = [text, *(path.read_text(encoding="utf-8") for path in beside if path.exists())]
    imported = {name for each in texts for names in _IMPORT.findall(each) for name in names if name}
    return None if all(map(_is_there, imported)) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out tests that are marked with an absent feature."""
    marked = {item: [str(name) for mark in item.iter_markers("feature") for name in mark.args] for item in items}
    items[:] = [item for item in items if all(map(_is_there, marked[item]))]


def _is_there(feature: str) -> bool:
    return all((FOLDER / name / "__init__.py").exists() for name in (FEATURES if feature == "all" else [feature]))
