"""Starts a server for a benchmark: a real process, a real socket, a temporary data directory."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

START_LIMIT_SECONDS = 300  # 100,000 personas that no server has seen yet
IMPORT_TIMEOUT_SECONDS = 1_800
NO_MODELS: dict[str, object] = {"embeddings_model": None, "reranker_model": None}
ANNOUNCEMENT = "Memory MCP listens on "


@dataclass(frozen=True)
class Server:
    """A running server, and its config.json. `started_in` is the time from the process's start to its announcement, in seconds."""

    url: str
    pid: int
    started_in: float
    config: Path

    def resident_mb(self) -> float:
        """Resident memory now, in MB (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(kilobytes) / 1024


@contextlib.contextmanager
def running(
    settings: dict[str, object] | None = None,
    data: Path | None = None,
    clock: Path | None = None,
    program: Sequence[str] = (),
    hurry: str | None = None,
    without: Sequence[str] = (),
    tree: Path | None = None,
) -> Iterator[Server]:
    """Starts a server with these settings (default: no models) on a free port, and stops it.

    `program` is another module that is run instead. `data` keeps what it stores beyond its end. `clock` is a file with the time that the server shall believe, and
    `hurry`, with a clock only, as how much under load it shall rerank, `without` the rules that it shall search without: see `clocked`. `tree` is another checkout whose code runs.
    """
    with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as directory:
        config = Path(directory, "config.json")
        config.write_text(json.dumps(settings or NO_MODELS), encoding="utf-8")
        usual = ["benchmarks.clocked", "--clock", str(clock)] if clock else ["memory_mcp", "serve", "--port", "0"]
        haste = [*(["--hurry", hurry] if hurry else []), *(["--without", *without] if without else [])]
        command = [
            sys.executable,
            "-m",
            *(program or usual),
            *haste,
            "--config",
            str(config),
            "--data",
            str(data or Path(directory, "memory")),
        ]
        begun = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tree, env=_environment()) as process:
            try:
                yield Server(_announced(process, begun), process.pid, time.perf_counter() - begun, config)
            finally:
                process.terminate()
                process.communicate(timeout=30)


def _environment() -> dict[str, str]:
    """As where people live: modules are compiled once, and not in every start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _announced(process: "subprocess.Popen[str]", begun: float) -> str:
    assert process.stderr is not None
    output = []
    for line in process.stderr:
        output.append(line)
        if line.startswith(ANNOUNCEMENT):
            return line.removeprefix(ANNOUNCEMENT).strip()
        if time.perf_counter() - begun > START_LIMIT_SECONDS:
            break
    raise SystemExit("the server did not start:\n" + "".join(output))
