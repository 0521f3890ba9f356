"""Exports a model in a process of its own: torch never enters the server's memory, and the process has the least priority. When the server
ends, in whatever way, so does the process.
"""

import json
import logging
import os
import pickle
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_mcp import __version__
from memory_mcp.encoders.failures import first_line
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Role
from memory_mcp.errors import EncoderFailed, MemoryMCPError
from memory_mcp.process import is_running
from memory_mcp.wording import sentence
from memory_mcp.worker_processes import Worker, answers_to_server

LIMIT_SECONDS = 1_800.0
REFUSED_SUFFIX = ".refused.json"
NICENESS = 19
# What an export writes at most: so many times the model's weights, for two copies that are moved around and int8, and some spare bytes.
WEIGHTS_WRITTEN, SPARE_BYTES = 4, 512 * 1024 * 1024
_PROGRAM = "from memory_mcp.encoders.onnx.background import main; main()"

logger = logging.getLogger(__name__)


class BackgroundExport:
    """Runs one such process at a time. `close` ends it."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._guard = threading.Lock()
        self._closed = False

    def export(self, name: str, role: Role, source: Path, target: Path) -> None:
        """Exports the model in `source` to the directory `target`: as a whole or not at all.

        Raises:
            EncoderFailed: it can't be exported.
        """
        needed = WEIGHTS_WRITTEN * sum(file.stat().st_size for file in availability.weight_files(source)) + SPARE_BYTES
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target)
            free = shutil.disk_usage(target.parent).free
        except OSError as error:
            raise EncoderFailed("{} can't be exported", "{} can't be used: {}", "", name, target.parent, error.strerror) from error
        if free < needed:
            raise EncoderFailed(
                "{} can't be exported", "the disk has {} MB free, and {} MB are needed", "", name, free // 2**20, needed // 2**20
            )
        refused = target.with_name(f"{target.name}{REFUSED_SUFFIX}")
        marks = {"fingerprint": availability.fingerprint(source), "version": __version__}
        _refuse_again(name, refused, marks)
        logger.info("%s %s is being exported for onnxruntime, once, in a process beside the server", role, name)
        started = time.monotonic()
        failure = self._run({"name": name, "role": role, "source": str(source), "target": str(target)}, name)
        if failure["lasting"]:
            with suppress(OSError):
                refused.write_text(json.dumps({**marks, "reason": failure["failure"]}), encoding="utf-8")
        if failure["failure"]:
            raise EncoderFailed("{} can't be exported", "{}", "", name, failure["failure"])
        logger.info("%s %s was exported (%.0f s)", role, name, time.monotonic() - started)

    @property
    def closed(self) -> bool:
        """Whether the server stops."""
        return self._closed

    def close(self) -> None:
        """Ends the process. Nothing is started afterwards."""
        with self._guard:
            self._closed = True
            if self._worker:
                self._worker.kill()

    def _run(self, request: dict[str, Any], name: str) -> dict[str, Any]:
        """The answer of the process: `failure`, None on success, and `lasting`, whether it would fail again at each try."""
        what = sentence("{} can't be exported", name)
        try:
            with self._guard:
                if self._closed:
                    raise EncoderFailed(what, "the server stops")
                self._worker = worker = Worker(_PROGRAM)
        except OSError as error:
            raise EncoderFailed(what, "no process could be started: {}", "", error.strerror) from error
        try:
            worker.send(request)
            answer: dict[str, Any] | None = worker.receive(LIMIT_SECONDS)
        finally:
            with self._guard:
                self._worker = None
            worker.end()
        if answer is None:
            raise EncoderFailed(what, "the server stops" if self._closed else "its process was ended, as where memory runs out")
        return answer


def _refuse_again(name: str, refused: Path, marks: dict[str, str]) -> None:
    """Raises what was found before, if that was about this model and this version: trying takes as long as an export."""
    try:
        refusal = json.loads(refused.read_text(encoding="utf-8"))
        same = {key: refusal[key] for key in marks} == marks
        reason = str(refusal["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if same:
        raise EncoderFailed("{} can't be exported", reason, "", name)


def remove_leftovers(target: Path) -> None:
    """Removes what exports to `target` left that were killed."""
    for directory in target.parent.glob(f".{target.name}.*"):
        owner = directory.name.removeprefix(f".{target.name}.").partition(".")[0]
        if time.time() - directory.stat().st_mtime > LIMIT_SECONDS or (owner.isdecimal() and not is_running(int(owner))):
            shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    """The process: does what it is asked, answers, and ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # the libraries complain of each other
    answers = answers_to_server()
    _give_way()
    request = pickle.load(sys.stdin.buffer)  # noqa: S301  the server wrote it
    threading.Thread(target=_end_with_server, daemon=True).start()
    failure, lasting = "", False
    try:
        _do(request)
    except MemoryMCPError as error:
        failure = (error.why or error.what).rstrip(".")
        lasting = not isinstance(error.__cause__, OSError | MemoryError)  # a full disk is no property of the model
    except BaseException as error:  # noqa: BLE001  the server needs an answer
        failure = f"{type(error).__name__}: {first_line(error)}"
    pickle.dump({"failure": failure, "lasting": lasting}, answers)
    answers.flush()
    os._exit(0)


def _do(request: dict[str, Any]) -> None:
    from memory_mcp.encoders.onnx import exporter  # noqa: PLC0415  only this process needs torch

    export = exporter.export_embedder if request["role"] == "embedder" else exporter.export_reranker
    export(request["name"], Path(request["source"]), Path(request["target"]))


def _give_way() -> None:
    """The server's calls go first, and where memory runs out, this process does."""
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
