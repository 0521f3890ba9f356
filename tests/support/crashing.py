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
    "embeddings_languages": ["ja", "en"],
    "reranker_model": None,
    "vector_rebuild": {"mode": "auto", "idle_seconds": 0, "min_interval": 0},
}
SUMMARISED: Mapping[str, Any] = {
    "embeddings_model": None,
    "reranker_model": None,
    "toolsets": ["core", "upkeep"],
    "upkeep": {"idle_seconds": 0},
    "summaries": {"quiet_minutes": 0, "interval_minutes": 0.01},
}
WOVEN: Mapping[str, Any] = {
    "embeddings_model": None,
    "reranker_model": None,
    "toolsets": ["core", "graph"],
    "upkeep": {"idle_seconds": 0},
    "summaries": {"enabled": False},
}
TAUGHT: Mapping[str, Any] = {
    "embeddings_model": None,
    "reranker_model": None,
    "toolsets": ["core", "experience"],
    "pools": {"team": {"writers": ["nilou"]}},
}
BY_WORDS: Mapping[str, Any] = {"embeddings_model": None, "reranker_model": None}

Holds = Callable[..., bool]

# What is called at each moment: (where it is looked up, before or after the call, and of which calls).
MOMENTS: Mapping[str, tuple[str, str, Holds]] = {
    "inside a write": ("memory_mcp.store.operations:record", "after", lambda *_: True),
    "after the commit, before the answer": ("memory_mcp.store.sqlite.database:Database._commit", "commit", lambda *_: True),
    "after the commit, before the log": ("memory_mcp.store.operations:OperationsLog.append", "before", lambda *_: True),
    "before the context file is replaced": ("pathlib:Path.replace", "before", lambda _, to: Path(to).name == "persona_context.json"),
    "vectors stored, the index not yet told": ("memory_mcp.index.sync:_update", "before", lambda *_: True),
    "the index told, the queue not yet": ("memory_mcp.index.sync:_dequeue", "before", lambda *_: True),
    "inside the file of the index": ("memory_mcp.store.vectors.faiss_index:VectorIndex.write_to", "after", lambda *_: True),
    "between index.faiss and manifest.json": ("pathlib:Path.replace", "before", lambda _, to: Path(to).name == "manifest.json"),
    "inside a rebuild": ("memory_mcp.store.vectors.index_files:build", "after", lambda *_: True),
    "before the other model answers": ("memory_mcp.index.sync:_swap", "before", lambda *_: True),
    "after the other model answers": ("memory_mcp.index.sync:_swap", "after", lambda *_: True),
    "inside the rows of a migration": ("memory_mcp.store.legacy.row_conversion:_moment", "before", lambda *_: True),
    "inside the words of a migration": ("memory_mcp.store.lexical.bm25_index:_write_rows", "after", lambda *_: True),
    "before a migration is committed": ("memory_mcp.store.lexical.bm25_index:rebuild_if_outdated", "after", lambda *_: True),
    "inside an import, a batch not stored": ("memory_mcp.server.actions.transfer:import_lines", "before", lambda *_: True),
    "inside an import, a batch stored": ("memory_mcp.server.actions.transfer:import_lines", "after", lambda *_: True),
    "inside an export": ("memory_mcp.store.memories:page_for_export", "after", lambda *_: True),
    "inside the reader of an export": ("memory_mcp.cli.import_export:Path.replace", "before", lambda _, to: Path(to).suffix == ".jsonl"),
    "inside the copy of a backup": ("memory_mcp.store.sqlite.snapshots:copy_snapshot", "after", lambda *_: True),
    "a backup written, not read back": ("memory_mcp.upkeep.backup:_verify", "before", lambda *_: True),
    "a backup read back, without its name": ("pathlib:Path.replace", "before", lambda _, to: ".tar.zst" in Path(to).name),
    "a backup taken apart": ("memory_mcp.upkeep.restore:finish", "before", lambda *_: True),
    "a persona made anew, not in its place": ("memory_mcp.personas.atomic_replace:_exchange", "before", lambda *_: True),
    "a persona aside, the other not in its place": ("pathlib:Path.rename", "after", lambda _, to: Path(to).suffix == ".old"),
    "another in a persona's place, the first still aside": (
        "memory_mcp.personas.atomic_replace:remove",
        "before",
        lambda path: path.suffix == ".old",
    ),
    "inside the change of a database's key": ("memory_mcp.store.sqlite.snapshots:convert", "after", lambda *_: True),
    "before a persona's key is wrapped": ("memory_mcp.store.files.encryption_keys:wrap", "before", lambda *_: True),
    "before another master key is in force": ("pathlib:Path.replace", "before", lambda _, to: Path(to).name == "master.key"),
    "after another master key is in force": ("pathlib:Path.replace", "after", lambda _, to: Path(to).name == "master.key"),
    "inside a turn of a conversation": ("memory_mcp.store.conversations:insert_turn", "after", lambda *_: True),
    "before a turn of a conversation": ("memory_mcp.store.conversations:insert_turn", "before", lambda *_: True),
    "inside a purge": ("memory_mcp.store.erasure:erase", "after", lambda *_: True),
    "after a purge, before its sweep": ("memory_mcp.upkeep.purge:sweep", "before", lambda *_: True),
    "inside a sweep, the index gone, the words not yet": ("memory_mcp.store.erasure:sweep_file", "before", lambda *_: True),
    "inside a sweep, the words gone, the log not yet": ("memory_mcp.store.erasure:_empty_log", "before", lambda *_: True),
    "inside a sweep, the log gone, the note not yet": ("memory_mcp.store.erasure:note_swept", "before", lambda *_: True),
    "inside a round of retention": ("memory_mcp.store.trash:move", "after", lambda *_: True),
    "inside the move of what has expired": ("memory_mcp.upkeep.retention_rules:_expire_by_time", "after", lambda *_: True),
    "before a persona's directory is moved": ("memory_mcp.personas.lifecycle:move", "before", lambda *_: True),
    "after a persona's directory is moved": ("memory_mcp.personas.lifecycle:move", "after", lambda *_: True),
    "before a moved persona is destroyed": ("memory_mcp.personas.lifecycle:destroy", "before", lambda *_: True),
    "inside a merge of personas": ("memory_mcp.store.persona_merge:merge_into", "after", lambda *_: True),
    "before what was written is listed for summaries": ("memory_mcp.store.summary_rows:note_touched", "before", lambda *_: True),
    "after what was written is listed for summaries": ("memory_mcp.store.summary_rows:note_touched", "after", lambda *_: True),
    "inside a summary": ("memory_mcp.store.summary_rows:register", "after", lambda *_: True),
    "after a summary is struck from the list": ("memory_mcp.store.summary_rows:remove_due", "after", lambda *_: True),
    "inside a merge": ("memory_mcp.store.memory_merges:note", "after", lambda *_: True),
    "inside the undoing of a merge": ("memory_mcp.store.memory_merges:drop", "after", lambda *_: True),
    "whom a memory names put down, the memory not yet": ("memory_mcp.store.graph.mentions:add", "after", lambda *_: True),
    "half of a weave": ("memory_mcp.graph.update.cooccurrence:_cooccurrences", "after", lambda *_: True),
    "a weave done, not struck from the list": ("memory_mcp.store.graph.relation_queue:done", "before", lambda *_: True),
    "older memories found that hold a new name": ("memory_mcp.store.graph.entities.names:note_read_until", "before", lambda *_: True),
    "inside a relate": (
        "memory_mcp.store.graph.relations:add",
        "after",
        lambda _, evidence, *__: bool(evidence) and evidence[0].memory is None,
    ),
    "inside an unrelate": ("memory_mcp.store.graph.relations:reject", "after", lambda *_: True),
    "inside a merge of entities": ("memory_mcp.store.graph.entities.entity_merges:merge", "after", lambda *_: True),
    "inside the lines of a graph": ("memory_mcp.store.graph.transfer.graph_import:GraphImport.finish", "before", lambda *_: True),
    "before what became of a memory is counted": ("memory_mcp.store.feedback:add", "before", lambda _, __, verdicts, *___: bool(verdicts)),
    "after what became of a memory is counted": ("memory_mcp.store.feedback:add", "after", lambda _, __, verdicts, *___: bool(verdicts)),
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
    with serving(directory, json.dumps(dict(settings)), moment=moment, ordinal=ordinal) as server:
        yield server


def kill(server: RunningServer) -> None:
    """Ends a server as a power cut ends it for its processes: no handler runs, nothing is flushed."""
    assert server.stop(signal.SIGKILL) == -signal.SIGKILL


def died(server: RunningServer) -> bool:
    """Whether it was killed, by itself or by us."""
    return server.process.wait(60) == -signal.SIGKILL


def arm(moment: str, ordinal: int) -> None:
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
    database = importlib.import_module("memory_mcp.store.sqlite.database")
    original: Callable[[apsw.Connection], AbstractContextManager[None]] = database.immediate

    @contextmanager
    def armed(connection: apsw.Connection) -> Iterator[None]:
        with original(connection):
            yield
        strike()

    vars(database)["immediate"] = armed


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    sys.argv[1:3] = []
    importlib.import_module("memory_mcp.cli").main()
