"""Servers that are killed: what they are configured with, and `memory-mcp` made to kill itself at a named moment.

    python crashing.py "MOMENT" ORDINAL serve …     runs memory-mcp, and sends itself SIGKILL at the ORDINAL-th MOMENT

A moment is a place in the product's own code, so that a kill falls between two lines where no outsider would hit it.
"""

import functools
import importlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
from processes import RunningServer, serving

# The index is saved and made anew as often as it can be, so that a kill often falls into it.
INDEXED: Mapping[str, Any] = {
    "embeddings_model": "hashing",
    "embeddings_class": "hashing_embeddings:HashingEmbeddings",
    "embeddings_arguments": {"dimension": 32},
    "reranker_model": None,
    "vector_rebuild": {"mode": "auto", "idle_seconds": 0, "min_interval": 0},
}
BY_WORDS: Mapping[str, Any] = {"embeddings_model": None, "reranker_model": None}

Holds = Callable[..., bool]

# What is called at each moment: (where it is looked up, before or after the call, and of which calls).
MOMENTS: Mapping[str, tuple[str, str, Holds]] = {
    "inside a write": ("memory_mcp.store.operations:record", "after", lambda *_: True),
    "after the commit, before the answer": ("memory_mcp.store.database:Database._commit", "commit", lambda *_: True),
    "after the commit, before the log": ("memory_mcp.store.operations:OperationsLog.append", "before", lambda *_: True),
    "before the context file is replaced": ("pathlib:Path.replace", "before", lambda _, to: Path(to).name == "persona_context.json"),
    "vectors stored, the index not yet told": ("memory_mcp.index.sync:_update", "before", lambda *_: True),
    "the index told, the queue not yet": ("memory_mcp.index.sync:_strike_off", "before", lambda *_: True),
    "inside the file of the index": ("memory_mcp.store.vectors:VectorIndex.write_to", "after", lambda *_: True),
    "between index.faiss and manifest.json": ("pathlib:Path.replace", "before", lambda _, to: Path(to).name == "manifest.json"),
    "inside a rebuild": ("memory_mcp.store.index_files:build", "after", lambda *_: True),
    "before the other model answers": ("memory_mcp.index.sync:_swap", "before", lambda *_: True),
    "after the other model answers": ("memory_mcp.index.sync:_swap", "after", lambda *_: True),
    "inside the rows of a migration": ("memory_mcp.store.legacy_values:_moment", "before", lambda *_: True),
    "inside the words of a migration": ("memory_mcp.store.lexical:_write_rows", "after", lambda *_: True),
    "before a migration is committed": ("memory_mcp.store.lexical:rebuild_if_outdated", "after", lambda *_: True),
    "inside an import, a batch not stored": ("memory_mcp.server.transfers:import_lines", "before", lambda *_: True),
    "inside an import, a batch stored": ("memory_mcp.server.transfers:import_lines", "after", lambda *_: True),
    "inside an export": ("memory_mcp.store.memories:page_for_export", "after", lambda *_: True),
    "inside the reader of an export": ("memory_mcp.cli.transfers:Path.replace", "before", lambda _, to: Path(to).suffix == ".jsonl"),
    "before a new persona's identity": (
        "memory_mcp.personas.directories:write_atomically",
        "before",
        lambda path, _: path.name == "persona.json",
    ),
    "after a new persona's identity": (
        "memory_mcp.personas.directories:write_atomically",
        "after",
        lambda path, _: path.name == "persona.json",
    ),
}


@contextmanager
def crashing(directory: Path, settings: Mapping[str, Any], moment: str | None = None, ordinal: int = 1) -> Iterator[RunningServer]:
    """A server over `directory`/memory with these settings, that kills itself at a moment if one is given."""
    here = Path(__file__)
    command = (sys.executable, str(here), moment, str(ordinal)) if moment else (sys.executable, "-m", "memory_mcp")
    with serving(directory, json.dumps(dict(settings)), command=command, environment=importable()) as server:
        yield server


def importable() -> dict[str, str]:
    """The environment in which the modules beside this one, and the product, can be imported."""
    here = Path(__file__).parent
    return {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])}


def kill(server: RunningServer) -> None:
    """Ends a server as a power cut ends it for its processes: no handler runs, nothing is flushed."""
    assert server.stop(signal.SIGKILL) == -signal.SIGKILL


def died(server: RunningServer) -> bool:
    """Whether it was killed, by itself or by us."""
    return server.process.wait(60) == -signal.SIGKILL


def _arm(moment: str, ordinal: int) -> None:
    """Makes the process kill itself at the ordinal-th time."""
    target, when, holds = MOMENTS[moment]
    module, _, path = target.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    times = itertools.count(1)

    def strike() -> None:
        if next(times) == ordinal:
            os.kill(os.getpid(), signal.SIGKILL)

    if when == "commit":
        _arm_commits(strike)
        return
    original = getattr(owner, name)

    @functools.wraps(original)
    def armed(*args: Any, **kwargs: Any) -> Any:
        if when == "before" and holds(*args):
            strike()
        result = original(*args, **kwargs)
        if when == "after" and holds(*args):
            strike()
        return result

    setattr(owner, name, armed)


def _arm_commits(strike: Callable[[], None]) -> None:
    database = importlib.import_module("memory_mcp.store.database")
    original: Callable[[apsw.Connection], AbstractContextManager[None]] = database.immediate

    @contextmanager
    def armed(connection: apsw.Connection) -> Iterator[None]:
        with original(connection):
            yield
        strike()

    vars(database)["immediate"] = armed


if __name__ == "__main__":
    _arm(sys.argv[1], int(sys.argv[2]))
    sys.argv[1:3] = []
    importlib.import_module("memory_mcp.cli").main()
