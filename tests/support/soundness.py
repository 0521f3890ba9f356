"""Whether the files of a data directory are sound, beside a running server or after it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
from index_comparison import compare, lag

from memory_mcp.index import sync
from memory_mcp.personas.registry import Personas
from memory_mcp.store.graph import consistency
from memory_mcp.store.vectors.index_cache import IndexCache


def contents(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file below, with what is in it; without one that a running server replaces or removes in that moment."""
    for path in sorted(directory.rglob("*")):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


def faults(data: Path) -> list[str]:
    """What SQLite finds wrong with any persona's database, its lexical index included."""
    return [f"{path.parent.name}: {fault}" for path in sorted(data.glob("*/memory.sqlite")) for fault in _faults(path)]


def _faults(path: Path) -> list[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(30_000)
        found = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        connection.execute("INSERT INTO lexical(lexical) VALUES ('integrity-check')")
        (without_words,) = connection.execute(
            "SELECT count(*) FROM memories WHERE deleted_at IS NULL AND kind <> 'summary' AND id NOT IN (SELECT rowid FROM lexical)"
        ).fetchone()
        return found + ([f"{without_words} memories without words"] if without_words else [])
    except apsw.Error as error:
        return [str(error)]
    finally:
        connection.close()


def graph_faults(data: Path) -> dict[str, object]:
    """Relations and counts that are not the sum of what speaks for them, per persona. The server must have stopped."""
    personas, found = Personas(data), {}
    try:
        for name in personas.names():
            with personas.reading(name) as persona, persona.database.read() as connection:
                everybody = consistency.after(connection, 0, 1_000_000)
                wrong = consistency.wrong_sums(connection, everybody), consistency.wrong_counts(connection, everybody)
            found.update({name: wrong} if any(wrong) else {})
    finally:
        personas.close()
    return found


def index_differences(data: Path) -> dict[str, str]:
    """Where an index and its database disagree, and what is not embedded, per persona. The server must have stopped."""
    personas, shelf, found = Personas(data), IndexCache(), {}
    try:
        for name in personas.names():
            with personas.reading(name) as persona:
                generation = sync.serving_generation(persona)
                waiting = lag(persona, generation) if generation else None
                differences = compare(persona, generation, shelf) if generation else None
                if waiting or differences or generation is None:
                    found[name] = f"answers from {generation}, {waiting} without a vector, {differences}"
    finally:
        personas.close()
    return found
