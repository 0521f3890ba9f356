"""From the to-do list to the index: embed what has no vector → vectors into SQLite → the open index → strike off the list.

Three things always hold. Every current memory without a vector in the serving generation is on the list. Vectors are in SQLite
before they are in an index. An index never loses what SQLite has. A crash between any two lines only repeats work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import apsw
import numpy as np

from memory_mcp.config.settings import LongTexts
from memory_mcp.encoders.protocols import Embedder
from memory_mcp.errors import EncoderFailed
from memory_mcp.index.splitting import DEFAULT_RULES, next_unembedded, split_long
from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import chunks, index_files, index_queue, long_texts, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexShelf
from memory_mcp.store.vectors.stored_vectors import Matrix, Unembedded

BATCH = 32
DROPPED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Applied:
    """What one call did. `waiting` counts memories that are still on the list."""

    embedded: int
    done: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ReEmbedded:
    """What one call did. `after` is the last chunk it came to; `swapped` says that the new generation answers from now on."""

    embedded: int
    after: int
    swapped: bool


@dataclass(frozen=True, slots=True)
class Differences:
    """Chunks that only one of the two has, and those that have another vector in the index. All empty: they are equal."""

    missing: tuple[int, ...] = ()
    surplus: tuple[int, ...] = ()
    unequal: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.unequal)


def look_over(persona: Persona, embedder: Embedder, loaded: Sequence[str]) -> str:
    """Settles which generation answers, and puts whatever lacks a vector in it on the list. Returns that generation.

    It stays the one it was as long as its model is among the `loaded` generations and has any vector. Otherwise the embedder's
    takes over at once, incomplete as it may be: what is embedded can be found, where the earlier one could answer nothing.
    """

    def settle(connection: apsw.Connection) -> str:
        serving = _to_answer(connection, embedder, loaded)
        if serving != stored_vectors.serving_generation(connection):
            stored_vectors.set_serving_generation(connection, serving)
        stored_vectors.enqueue_lacking(connection, serving)
        return serving

    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        settled = serving == embedder.generation and not stored_vectors.lacking_beyond_queue(connection, serving)
    return persona.database.write(settle) if not (settled and serving) else serving


def apply_queue(
    persona: Persona, embedder: Embedder, indexes: IndexShelf, *, zone: ZoneInfo, rules: LongTexts = DEFAULT_RULES, batch: int = BATCH
) -> Applied:
    """Takes one small batch off the to-do list of a persona. The first embedder that a persona meets begins to answer at once.

    A batch begins with the newest: what was just said is found in the next turn, however much waits before it.
    Long ones are split by `rules` first.

    Raises:
        EncoderFailed: the model could not be asked; nothing was changed.
        StoreError: the database can't be used.
        ValueError: another generation answers; `look_over` comes first.
    """
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        if serving not in {None, embedder.generation}:
            raise ValueError(f"{embedder.generation} does not answer for {persona.name}: look_over comes first")
        newest = index_queue.newest(connection, batch // 4)
        rows = newest | index_queue.oldest(connection, batch)
    split_long(persona, embedder, list(rows), rules, zone)
    with persona.database.read() as connection:
        dropped = stored_vectors.dropped_chunks(connection)
        if serving and not (rows or dropped):
            return Applied(0, 0, 0)
        wanting = stored_vectors.unembedded(connection, embedder.generation, batch // 2, zone, of=newest)
        wanting += stored_vectors.unembedded(connection, embedder.generation, batch - len(wanting), zone, of=rows.keys() - newest.keys())
    vectors = _embed(embedder, wanting)
    change = persona.database.write(lambda connection: _store(connection, embedder.generation, wanting, vectors))
    _update(persona, indexes, list(rows), dropped, change)
    # Dequeue last: a crash before this line only repeats work.
    done, waiting = persona.database.write(lambda connection: _strike_off(connection, embedder.generation, rows, dropped))
    return Applied(len(wanting), done, waiting)


def re_embed(
    persona: Persona,
    embedder: Embedder,
    indexes: IndexShelf,
    *,
    zone: ZoneInfo,
    rules: LongTexts = DEFAULT_RULES,
    after: int = 0,
    batch: int = BATCH,
) -> ReEmbedded:
    """Embeds the next chunks under a generation that does not answer yet; when none is left, it answers from then on.

    Call it with the last `after` until it has `swapped`. Meanwhile the earlier generation answers as before.

    Raises:
        EncoderFailed: the model could not be asked; nothing was changed.
        StoreError: the database can't be used.
    """
    wanting = next_unembedded(persona, embedder, rules, zone, after, batch)
    if wanting:
        vectors = _embed(embedder, wanting)
        persona.database.write(
            lambda connection: stored_vectors.write(connection, embedder.generation, [chunk.chunk for chunk in wanting], vectors)
        )
        return ReEmbedded(len(wanting), wanting[-1].chunk, swapped=False)
    # What came back from the trash has an old chunk: only a look at everything says that nothing is left.
    return ReEmbedded(0, 0, swapped=_swap(persona, embedder.generation, indexes))


def drop_unused(persona: Persona, keep: Sequence[str], indexes: IndexShelf) -> bool:
    """Deletes some of the vectors of generations that are neither serving nor among `keep`. Whether there may be more."""
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        kept = {*keep, *([serving] if serving else [])}
        if not stored_vectors.generations(connection) - kept:
            indexes.drop(persona.database, keep=serving)
            return False

    def drop(connection: apsw.Connection) -> int:
        long_texts.forget_rules(connection, kept)
        return stored_vectors.drop_other_generations(connection, kept, DROPPED_AT_ONCE)

    return persona.database.write(drop) > 0


def rebuild(persona: Persona, generation: str, indexes: IndexShelf) -> VectorIndex:
    """Makes the index anew from SQLite and saves it. Readers of an open one go over to the new one.

    Raises:
        StoreError: the database can't be read, or the file not be written.
    """
    with indexes.making(persona.database):
        with persona.database.read() as connection:
            index = index_files.build(connection, generation)
        indexes.set_aside_unusable(persona.database, generation)
        if indexes.opened(persona.database, generation) is not None:
            indexes.put(persona.database, index)
        indexes.save(persona.database, index)
    return index


def save(persona: Persona, generation: str, indexes: IndexShelf) -> bool:
    """Saves the open index if its file lacks a change. Whether there was anything to save.

    Raises:
        StoreReadOnly: it can't be written.
    """
    index = indexes.opened(persona.database, generation)
    if index is None or not index.dirty:
        return False
    indexes.save(persona.database, index)
    return True


def needs_rebuild(persona: Persona, generation: str, indexes: IndexShelf) -> bool:
    """Whether the saved index is missing, of another generation, or older than the last change, and no open one will be saved."""
    if indexes.opened(persona.database, generation) is not None:
        return False
    with persona.database.read() as connection:
        change = stored_vectors.change_number(connection)
    return not index_files.is_current(persona.database, generation, change)


def serving_generation(persona: Persona) -> str | None:
    """The generation that answers for a persona; None before its first model."""
    with persona.database.read() as connection:
        return stored_vectors.serving_generation(connection)


def waiting(persona: Persona, embedder: Embedder, loaded: Sequence[str]) -> int:
    """How many memories have no vector in the generation that answers; before `look_over` was here, in the one that it will let answer."""
    with persona.database.read() as connection:
        return stored_vectors.lag(connection, _to_answer(connection, embedder, loaded))


def chunks_lacking(persona: Persona, generation: str) -> int:
    """How many chunks have no vector in a generation. Looks at every memory."""
    with persona.database.read() as connection:
        return stored_vectors.chunks_lacking(connection, generation)


def lag(persona: Persona, generation: str) -> int:
    """How many memories have no vector in a generation. Looks at every memory."""
    with persona.database.read() as connection:
        return stored_vectors.lag(connection, generation)


def compare(persona: Persona, generation: str, indexes: IndexShelf) -> Differences:
    """What the index and SQLite disagree on: every id and every vector. For doctor and for tests.

    Raises:
        StoreError: the database can't be read.
    """
    index = indexes.get(persona.database, generation)
    if index is None:
        return Differences()
    held = index.ids()
    unequal: list[int] = []
    with persona.database.read() as connection:
        wanted = stored_vectors.ids(connection, generation)
        for page, vectors in stored_vectors.pages(connection, generation):
            known, own = index.reconstruct(page.tolist())
            stored = vectors[np.isin(page, known)]
            unequal += [chunk for chunk, same in zip(known, np.abs(own - stored).max(axis=1, initial=0) < 1e-5, strict=True) if not same]
    return Differences(tuple(np.setdiff1d(wanted, held).tolist()), tuple(np.setdiff1d(held, wanted).tolist()), tuple(unequal))


def _to_answer(connection: apsw.Connection, embedder: Embedder, loaded: Sequence[str]) -> str:
    """The generation that serves, or the embedder's where that one can't answer or has nothing to answer with."""
    serving = stored_vectors.serving_generation(connection)
    if serving is None or serving not in loaded or (serving != embedder.generation and not stored_vectors.has_any(connection, serving)):
        return embedder.generation
    return serving


def _embed(embedder: Embedder, wanting: Sequence[Unembedded]) -> Matrix:
    if not wanting:
        return np.empty((0, embedder.dimension), np.float32)
    vectors = embedder.embed_documents([chunk.text for chunk in wanting])
    if vectors.shape != (len(wanting), embedder.dimension) or not np.isfinite(vectors).all():
        raise EncoderFailed(
            f"{embedder.name} answered with unusable vectors",
            f"{len(wanting)} finite ones of length {embedder.dimension} were expected, and the shape is {vectors.shape}",
        )
    return vectors


def _store(connection: apsw.Connection, generation: str, wanting: Sequence[Unembedded], vectors: Matrix) -> int:
    """The vectors, and that something changed. A generation begins to answer when there is no other."""
    if stored_vectors.serving_generation(connection) is None:
        stored_vectors.set_serving_generation(connection, generation)
        stored_vectors.enqueue_lacking(connection, generation)
    stored_vectors.write(connection, generation, [chunk.chunk for chunk in wanting], vectors)
    return stored_vectors.note_change(connection)


def _update(persona: Persona, indexes: IndexShelf, memory_ids: Sequence[int], dropped: Sequence[int], change: int) -> None:
    """Makes the open index hold of these memories what SQLite has. One that is not open will see it when it is loaded."""
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        index = indexes.opened(persona.database, serving) if serving else None
        if index is None or serving is None:
            return
        wanted, vectors = stored_vectors.of_memories(connection, serving, memory_ids)
        kept, _ = stored_vectors.of_chunks(connection, serving, dropped)  # gone from another generation only
        stored = chunks.of_memories(connection, memory_ids)
    index.remove({*stored, *dropped}.difference(wanted.tolist(), kept.tolist()))
    index.add(wanted, vectors)
    index.change = change


def _strike_off(connection: apsw.Connection, generation: str, rows: dict[int, int], dropped: Sequence[int]) -> tuple[int, int]:
    """Only what is finished, and only the notes that were read: one that a write made meanwhile stays."""
    stored_vectors.forget_dropped(connection, dropped)
    unfinished = stored_vectors.lacking_among(connection, generation, list(rows))
    finished = {memory_id: sequence for memory_id, sequence in rows.items() if memory_id not in unfinished}
    index_queue.strike_off(connection, finished)
    return len(finished), index_queue.length(connection)


def _swap(persona: Persona, generation: str, indexes: IndexShelf) -> bool:
    """Lets a complete generation answer, with its index open before the first reader asks."""

    def swap(connection: apsw.Connection) -> bool:
        if stored_vectors.lacking_beyond_queue(connection, generation):
            return False
        stored_vectors.set_serving_generation(connection, generation)
        return True

    with indexes.making(persona.database):
        with persona.database.read() as connection:
            index = index_files.build(connection, generation)
        swapped = persona.database.write(swap)
        if swapped:
            indexes.put(persona.database, index)
    return swapped
