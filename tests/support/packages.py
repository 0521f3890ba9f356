"""The wheel and the source archive, and environments with them: of links to what is installed here, or of packages from the index."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from processes import ROOT, clean_environment

# Nothing of the tests or of the checkout can be imported.
ALONE = {"PYTHONPATH": "", "PYTHONSAFEPATH": "1"}


def build(directory: Path) -> tuple[Path, Path]:
    """The source archive of this tree, and the wheel that is built from it; the bundle for Claude Desktop lies beside them."""
    _run(sys.executable, str(ROOT / "distribution" / "build.py"), str(directory))
    (archive,), (wheel,) = directory.glob("*.tar.gz"), directory.glob("*.whl")
    return archive, wheel


def linked(directory: Path, wheel: Path, *extras: str) -> Path:
    """The commands of an environment with the wheel and what it requires, and with nothing else.

    The wheel is installed. What it requires are links to the files that are installed here: made in a second, and without a network.
    """
    venv.create(directory, with_pip=False, symlinks=os.name != "nt")
    site = Path(_run(_python(directory), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (program,) = metadata.distributions(path=[str(wheel)])
    for distribution in _closure(program, {"", *extras}):
        for file in distribution.files or []:
            if ".." not in file.parts:
                link = site / file
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.locate())
    _run(sys.executable, "-m", "pip", "--python", _python(directory), "install", "--quiet", "--no-deps", "--no-compile", str(wheel))
    return _commands(directory)


def installed(directory: Path, *requirements: str) -> Path:
    """The commands of an environment with these requirements, from the package index."""
    venv.create(directory, with_pip=False, symlinks=os.name != "nt")
    _run(sys.executable, "-m", "pip", "--python", _python(directory), "install", "--quiet", *requirements, seconds=900)
    return _commands(directory)


def run(command: Path | str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of such an environment to its end."""
    return subprocess.run(
        [str(command), *arguments],
        env=clean_environment({**ALONE, **environment}),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def importable(commands: Path, modules: Sequence[str]) -> list[str]:
    """Which of these modules the environment has."""
    program = "import sys; from importlib.util import find_spec; print(*[name for name in sys.argv[1:] if find_spec(name)])"
    return run(commands / "python", "-c", program, *modules).stdout.split()


def _closure(program: metadata.Distribution, extras: set[str]) -> list[metadata.Distribution]:
    """All that a package requires with these extras, and what that requires."""
    found: dict[tuple[str, str], metadata.Distribution] = {}

    def add(distribution: metadata.Distribution, extra: str) -> None:
        for requirement in _required(distribution, extra):
            wanted = program if requirement.name == program.name else metadata.distribution(requirement.name)
            for further in ("", *requirement.extras):
                if (wanted.name, further) not in found:
                    found[wanted.name, further] = wanted
                    add(wanted, further)

    for extra in sorted(extras):
        add(program, extra)
    return list({one.name: one for one in found.values() if one.name != program.name}.values())


def _required(distribution: metadata.Distribution, extra: str) -> Iterator[Requirement]:
    for line in distribution.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _commands(directory: Path) -> Path:
    return directory / ("Scripts" if os.name == "nt" else "bin")


def _python(directory: Path) -> str:
    return str(_commands(directory) / "python")


def _run(*command: str, seconds: int = 100) -> str:
    done = subprocess.run(command, env=clean_environment(ALONE), capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
