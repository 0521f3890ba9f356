"""Builds what is published: the source archive, the wheel, and the bundle for Claude Desktop.

    python distribution/build.py dist

The bundle (MCPB) has the sources and a manifest: the host's uv installs what pyproject.toml requires, and runs `memory-mcp stdio`.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("pyproject.toml", "README.md", "LICENSE")
ARCHIVE = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def build(target: Path) -> None:
    """Builds all three into the directory `target`. The wheel is made of the source archive, so that the archive is known to be complete."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        sources = Path(directory)
        for name, path in _files():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, sources / name)
        subprocess.run([sys.executable, "-c", ARCHIVE, str(target.resolve())], cwd=sources, check=True, stdout=subprocess.DEVNULL)
    (archive,) = target.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(archive)]
    subprocess.run(pip, check=True)
    _bundle(target)


def _bundle(target: Path) -> None:
    manifest = Path(__file__).with_name("manifest.json")
    version = json.loads(manifest.read_text(encoding="utf-8"))["version"]
    with zipfile.ZipFile(target / f"persona-memory-mcp-{version}.mcpb", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.write(manifest, manifest.name)
        for name, path in _files():
            bundle.write(path, name)


def _files() -> Iterator[tuple[str, Path]]:
    """The files of the program, by their names in an archive."""
    for name in NAMES:
        yield name, ROOT / name
    for path in sorted((ROOT / "memory_mcp").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            yield path.relative_to(ROOT).as_posix(), path


if __name__ == "__main__":
    build(Path(sys.argv[1]))
