"""Tokens as the models of OpenAI count them (o200k), by the npm package gpt-tokenizer, which brings the ranks along.

It is one of the packages of tests/outside/clients (`make clients`). Where those are not installed, npm fetches it into a temporary directory.
"""

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CLIENTS = Path(__file__).parents[1] / "tests" / "outside" / "clients"
PACKAGE = "gpt-tokenizer"
SCRIPT = """
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
let sent = "";
for await (const part of process.stdin) sent += part;
const plain = { disallowedSpecial: new Set() };
console.log(JSON.stringify(JSON.parse(sent).map((text) => countTokens(text, plain))));
"""
FETCH_SECONDS = 120


def counted(texts: Sequence[str]) -> list[int] | None:
    """The tokens of each text; None where there is no Node, or npm can't fetch the package."""
    packaged = [str(path) for path in sorted(CLIENTS.glob("node_modules/node-*/bin/node*"))]
    node, place = next(iter(packaged), shutil.which("node")), _place()
    if node is None or place is None:
        return None
    done = subprocess.run(
        [node, "--input-type=module", "-e", SCRIPT], cwd=place, input=json.dumps(texts), capture_output=True, encoding="utf-8", check=True
    )
    return [int(count) for count in json.loads(done.stdout)]


@functools.cache
def _place() -> Path | None:
    """A directory whose node_modules hold the package."""
    if (CLIENTS / "node_modules" / PACKAGE).is_dir():
        return CLIENTS
    npm = shutil.which("npm")
    if npm is None:
        return None
    version = json.loads((CLIENTS / "package.json").read_text(encoding="utf-8"))["dependencies"][PACKAGE]
    place = Path(tempfile.gettempdir(), f"memory-mcp-{PACKAGE}-{version}")
    if not (place / "node_modules" / PACKAGE).is_dir():
        place.mkdir(exist_ok=True)
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", f"{PACKAGE}@{version}"]
        try:
            subprocess.run(command, cwd=place, capture_output=True, timeout=FETCH_SECONDS, check=True)
        except (subprocess.SubprocessError, OSError):
            return None
    return place
