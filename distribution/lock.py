"""Writes constraints.txt: the exact versions of what the requirements in requirements.txt and requirements-dev.txt require in turn.

    .venv/bin/python distribution/lock.py

They are those of the environment that runs this, so that the tests have run with them. What torch requires differs by platform, and torch
itself names exact versions: that is left out.
"""

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILES = ("requirements.txt", "requirements-dev.txt")
HEADER = "# What requirements.txt and requirements-dev.txt require in turn: written by distribution/lock.py, and read with them.\n"
OWN_REQUIREMENTS = {"torch"}


def locked() -> dict[str, str]:
    """The versions, by name."""
    run, development = map(_direct, FILES)
    found: dict[str, str] = {}
    waiting = [(name, extra) for name, extras in [*run.items(), *development.items()] for extra in ("", *extras)]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        for requirement in _required(name, extra):
            further = canonicalize_name(requirement.name)
            if further not in run:
                found[further] = metadata.version(further)
            new = {(further, wanted) for wanted in ("", *requirement.extras)} - seen
            seen |= new
            waiting += new
    return found


def _direct(file: str) -> dict[str, set[str]]:
    lines = [line for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if re.match(r"\w", line)]
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one.extras for one in found if one.marker is None or one.marker.evaluate()}


def _required(name: str, extra: str) -> list[Requirement]:
    lines = [] if name in OWN_REQUIREMENTS else metadata.requires(name) or []
    found = [Requirement(line) for line in lines]
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": extra})]


if __name__ == "__main__":
    lines = [f"{name}=={version}\n" for name, version in sorted(locked().items())]
    (ROOT / "constraints.txt").write_text(HEADER + "".join(lines), encoding="utf-8")
