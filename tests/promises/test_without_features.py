"""The fast tests of everything else pass in a copy of the project that lacks the folder of a feature."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, clean_environment

from memory_mcp.feature import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(3_600)]

FEATURES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
# What is made in a checkout.
MADE = {".git", ".venv", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "node_modules", "build", "dist"}


def not_copied(directory: str, names: list[str]) -> set[str]:
    """What of a directory no test needs: all but a mark of the directories in which personas and their settings are."""
    is_of_owner = Path(directory) in (ROOT / "memory", ROOT / "config")
    return {name for name in names if name in MADE or (is_of_owner and name != ".gitkeep")}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project."""
    directory = tmp_path_factory.mktemp("copy") / "project"
    shutil.copytree(ROOT, directory, copy_function=os.symlink, ignore=not_copied)
    return directory


@pytest.mark.parametrize("feature", FEATURES)
def test_the_other_fast_tests_pass_without_a_feature(feature, copy, tmp_path, figure):
    folder = copy / FOLDER.relative_to(ROOT) / feature
    folder.rename(tmp_path / feature)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"],
            cwd=copy,
            env=clean_environment({"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": ""}),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        (tmp_path / feature).rename(folder)
    assert done.returncode == 0, f"{done.stdout[-5_000:]}{done.stderr[-5_000:]}"
    figure(f"fast tests without {feature}", done.stdout.strip().rpartition("\n")[2])
