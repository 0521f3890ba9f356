"""Keeps a persona's index up to date: queued memories → embed → vectors into SQLite → the open index → remove from the queue.

Three invariants: every current memory without a vector in the serving generation is in the queue; vectors are in SQLite before they are
in an index; an index never lacks for good what SQLite has. A crash between any two lines only repeats work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import apsw
import numpy as np

from memory_mcp.config.settings import LongTexts
from memory_mcp.encoders.models import Embedder
from memory_mcp.errors import EncoderFailed
from memory_mcp.index.splitting import DEFAULT_RULES, next_unembedded, split_long
from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import chunks, index_files, index_queue, long_texts, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.store.vectors.stored_vectors import Matrix, Unembedded

BATCH, LARGEST_BATCH = 32, 256
# In Japanese; more in English.
CHARACTERS_OF_TWO_TOKENS = 3
DROPPED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of one call. `waiting` counts the memories that are still in the queue."""

    embedded: int
    done: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ReEmbedded:
    """The result of one call. `after` is the last chunk embedded; `swapped` is true if the new generation now serves."""

    embedded: int
    after: int
    swapped: bool


def prepare(persona: Persona, embedder: Embedder, loaded: Sequence[str]) -> str:
    """Chooses the serving generation, queues every memory without a vector in it, and returns it.

    It stays the same as long as its model is among the `loaded` generations and it has any vector. Otherwise the embedder's generation
    takes over at once, even incomplete: what it has can be found, while the earlier one could find nothing.
    """

    def choose(connection: apsw.Connection) -> str:
        serving = generation_to_serve(connection, embedder, loaded)
        if serving != stored_vectors.serving_generation(connection):
            stored_vectors.set_serving_generation(connection, serving)
        stored_vectors.enqueue_lacking(connection, serving)
        return serving

    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        unchanged = serving == embedder.generation and not stored_vectors.lacking_beyond_queue(connection, serving)
    return persona.database.write(choose) if not (unchanged and serving) else serving


def apply_queue(
    persona: Persona,
    embedder: Embedder,
    indexes: IndexCache,
    *,
    zone: ZoneInfo,
    rules: LongTexts = DEFAULT_RULES,
    batch: int | None = None,
) -> Applied:
    """Indexes one small batch of a persona's queue. The first embedder of a persona serves at once.

    A batch starts with the newest memories, so that the last turn of a conversation is found in the next, however long the queue is.
    Long memories are split by `rules` first. `batch`: how many, unless as many as suit the embedder.

    Raises:
        EncoderFailed: the model failed; nothing was changed.
        StoreError: the database can't be used.
        ValueError: another generation serves; call `prepare` first.
    """
    batch = batch or _suitable(embedder)
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        if serving not in {None, embedder.generation}:
            raise ValueError(f"{embedder.generation} does not serve {persona.name}: call prepare first")
        piece_characters = rules.chunk_tokens * CHARACTERS_OF_TWO_TOKENS // 2
        newest = index_queue.batch(connection, batch // 4, piece_characters, newest=True)
        rows = newest | index_queue.batch(connection, batch, piece_characters)
    split_long(persona, embedder, list(rows), rules, zone)
    with persona.database.read() as connection:
        dropped = stored_vectors.dropped_chunks(connection)
        if serving and not (rows or dropped):
            return Applied(0, 0, 0)
        unembedded = stored_vectors.unembedded(connection, embedder.generation, batch // 2, zone, of=newest)
        unembedded += stored_vectors.unembedded(
            connection, embedder.generation, batch - len(unembedded), zone, of=rows.keys() - newest.keys()
        )
    vectors = _embed(embedder, unembedded)
    change = persona.database.write(lambda connection: _store(connection, embedder.generation, unembedded, vectors))
    _update(persona, indexes, list(rows), dropped, change)
    # Dequeue last: a crash before this line only repeats work.
    done, waiting = persona.database.write(lambda connection: _dequeue(connection, embedder.generation, rows, dropped))
    return Applied(len(unembedded), done, waiting)


def re_embed(
    persona: Persona,
    embedder: Embedder,
    indexes: IndexCache,
    *,
    zone: ZoneInfo,
    rules: LongTexts = DEFAULT_RULES,
    after: int = 0,
    batch: int | None = None,
) -> ReEmbedded:
    """Embeds the next chunks in a generation that does not serve yet; once none is left, it serves.

    Call it with the last `after` until the result is `swapped`. Until then, the earlier generation serves.

    Raises:
        EncoderFailed: the model failed; nothing was changed.
        StoreError: the database can't be used.
    """
    unembedded = next_unembedded(persona, embedder, rules, zone, after, batch or _suitable(embedder))
    if unembedded:
        vectors = _embed(embedder, unembedded)
        persona.database.write(
            lambda connection: stored_vectors.write(connection, embedder.generation, [chunk.chunk for chunk in unembedded], vectors)
        )
        return ReEmbedded(len(unembedded), unembedded[-1].chunk, swapped=False)
    # A memory restored from the trash has an old chunk number, so only a check of all chunks shows that none is left.
    return ReEmbedded(0, 0, swapped=_swap(persona, embedder.generation, indexes))


def drop_unused(persona: Persona, keep: Sequence[str] | None, indexes: IndexCache) -> bool:
    """Deletes some of the vectors of generations that neither serve nor are in `keep`; None keeps all. Returns whether there may be more."""
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        kept = {*(keep or ()), *([serving] if serving else [])}
        if keep is None or not stored_vectors.generations(connection) - kept:
            indexes.drop(persona.database, keep=serving)
            return False

    def drop(connection: apsw.Connection) -> int:
        long_texts.forget_rules(connection, kept)
        return stored_vectors.drop_other_generations(connection, kept, DROPPED_AT_ONCE)

    return persona.database.write(drop) > 0


def rebuild(persona: Persona, generation: str, indexes: IndexCache) -> VectorIndex:
    """Rebuilds the index from SQLite and saves it. Readers of an open index switch to the new one.

    Raises:
        StoreError: the database can't be read, or the file can't be written.
    """
    with indexes.making(persona.database):
        with persona.database.read() as connection:
            index = index_files.build(connection, generation)
        indexes.set_aside_unusable(persona.database, generation)
        if indexes.opened(persona.database, generation) is not None:
            indexes.put(persona.database, index)
        indexes.save(persona.database, index)
    return index


def save(persona: Persona, generation: str, indexes: IndexCache) -> bool:
    """Saves the open index if it has unsaved changes. Returns whether it had any.

    Raises:
        StoreReadOnly: it can't be written.
    """
    index = indexes.opened(persona.database, generation)
    if index is None or not index.dirty:
        return False
    indexes.save(persona.database, index)
    return True


def needs_rebuild(persona: Persona, generation: str, indexes: IndexCache) -> bool:
    """Whether the saved index is missing, of another generation or older than the last change, and no open index will replace it."""
    if indexes.opened(persona.database, generation) is not None:
        return False
    with persona.database.read() as connection:
        change = stored_vectors.change_number(connection)
    return not index_files.is_current(persona.database, generation, change)


def serving_generation(persona: Persona) -> str | None:
    """The generation that answers searches of a persona; None before its first model."""
    with persona.database.read() as connection:
        return stored_vectors.serving_generation(connection)


def chunks_lacking(persona: Persona, generation: str) -> int:
    """How many chunks have no vector in a generation. Reads every memory."""
    with persona.database.read() as connection:
        return stored_vectors.chunks_lacking(connection, generation)


def generation_to_serve(connection: apsw.Connection, embedder: Embedder, loaded: Sequence[str]) -> str:
    """The serving generation, or the embedder's if that one's model isn't loaded or it has no vectors: the one that `prepare` chooses."""
    serving = stored_vectors.serving_generation(connection)
    if serving is None or serving not in loaded or (serving != embedder.generation and not stored_vectors.has_any(connection, serving)):
        return embedder.generation
    return serving


def _suitable(embedder: Embedder) -> int:
    """How many texts one batch has: enough for all workers of the embedder, and so few that it ends soon."""
    return min(max(BATCH, embedder.texts_at_once), LARGEST_BATCH)


def _embed(embedder: Embedder, unembedded: Sequence[Unembedded]) -> Matrix:
    if not unembedded:
        return np.empty((0, embedder.dimension), np.float32)
    vectors = embedder.embed_documents([chunk.text for chunk in unembedded])
    if vectors.shape != (len(unembedded), embedder.dimension) or not np.isfinite(vectors).all():
        raise EncoderFailed(
            "{} returned unusable vectors",
            "{} finite ones of length {} were expected, and the shape is {}",
            "",
            embedder.name,
            len(unembedded),
            embedder.dimension,
            vectors.shape,
        )
    return vectors


def _store(connection: apsw.Connection, generation: str, unembedded: Sequence[Unembedded], vectors: Matrix) -> int:
    """Writes the vectors and returns the new change number. A generation starts to serve if there is no other."""
    if stored_vectors.serving_generation(connection) is None:
        stored_vectors.set_serving_generation(connection, generation)
        stored_vectors.enqueue_lacking(connection, generation)
    stored_vectors.write(connection, generation, [chunk.chunk for chunk in unembedded], vectors)
    return stored_vectors.note_change(connection)


def _update(persona: Persona, indexes: IndexCache, memory_ids: Sequence[int], dropped: Sequence[int], change: int) -> None:
    """Makes the open index equal to SQLite for these memories. A closed index is updated when it is loaded."""
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        index = indexes.opened(persona.database, serving) if serving else None
        if index is None or serving is None:
            return
        wanted, vectors = stored_vectors.of_memories(connection, serving, memory_ids)
        kept, _ = stored_vectors.of_chunks(connection, serving, dropped)  # dropped only from another generation
        stored = chunks.of_memories(connection, memory_ids)
    index.remove({*stored, *dropped}.difference(wanted.tolist(), kept.tolist()))
    index.add(wanted, vectors)
    index.change = change


def _dequeue(connection: apsw.Connection, generation: str, rows: dict[int, int], dropped: Sequence[int]) -> tuple[int, int]:
    """Removes finished memories from the queue, but not entries that a write has added since they were read."""
    stored_vectors.forget_dropped(connection, dropped)
    unfinished = stored_vectors.lacking_among(connection, generation, list(rows))
    finished = {memory_id: sequence for memory_id, sequence in rows.items() if memory_id not in unfinished}
    index_queue.remove(connection, finished)
    return len(finished), index_queue.length(connection)


def _swap(persona: Persona, generation: str, indexes: IndexCache) -> bool:
    """Makes a complete generation the serving one, with its index open before the first reader needs it."""

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
