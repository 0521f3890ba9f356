"""The vectors of a memory in its JSON line, so that an import need not embed again what a model has embedded."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from memory_mcp.domain import Chunk, Draft, Embedded
from memory_mcp.errors import InvalidInput

# The dimension of each generation whose model is loaded here.
Generations = Mapping[str, int]

FLOAT = np.dtype("<f4")
# Vectors are of length 1; what a float32 is off by, and a little more.
LENGTH_TOLERANCE = 1e-3


def as_json(embedded: Embedded) -> dict[str, Any]:
    """`generation`, the `pieces` (start and end in characters, or a question's text), and `values`: base64 of float32, little-endian."""
    pieces = [*([chunk.start, chunk.end] for chunk in embedded.chunks), *embedded.questions]
    return {"generation": embedded.generation, "pieces": pieces, "values": base64.b64encode(embedded.vectors).decode()}


def embedded_in(told: Mapping[str, Any], draft: Draft, generations: Generations) -> Embedded | None:
    """The vectors that a line has for its memory; None where no model here made such ones: it will be embedded anew.

    Raises:
        InvalidInput: they are not what an export writes, or not of this memory.
    """
    generation, pieces, values = (told.get(name) for name in ("generation", "pieces", "values"))
    if not isinstance(generation, str) or not isinstance(pieces, list) or not isinstance(values, str):
        raise _unusable("an export writes generation, pieces and values")
    dimension = generations.get(generation)
    if dimension is None:
        return None
    chunks = tuple(Chunk(*piece) for piece in pieces if _is_span(piece))
    questions = tuple(piece for piece in pieces if isinstance(piece, str))
    if not _covers(chunks, len(draft.content)) or set(questions) != set(draft.questions) or len(questions) != len(set(questions)):
        raise _unusable("their pieces are not those of this memory")
    if [*([chunk.start, chunk.end] for chunk in chunks), *questions] != pieces:
        raise _unusable("their pieces are not in order")
    return Embedded(generation, dimension, chunks, questions, _checked(values, len(pieces), dimension))


def _checked(values: str, pieces: int, dimension: int) -> bytes:
    try:
        blob = base64.b64decode(values, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unusable("their values are no base64") from error
    if len(blob) != pieces * dimension * FLOAT.itemsize:
        raise _unusable(f"{pieces} of length {dimension} were expected")
    lengths = np.linalg.norm(np.frombuffer(blob, FLOAT).reshape(pieces, dimension), axis=1)
    if not (np.abs(lengths - 1) < LENGTH_TOLERANCE).all():  # false of what is not finite, too
        raise _unusable("not each is of length 1")
    return blob


def _is_span(piece: object) -> bool:
    return isinstance(piece, list) and len(piece) == 2 and all(type(place) is int for place in piece)


def _covers(chunks: tuple[Chunk, ...], length: int) -> bool:
    """Whether these pieces are the whole text, in order and without gaps."""
    end = 0
    for chunk in chunks:
        if not (0 <= chunk.start <= end < chunk.end <= length) and not (chunk.start == end == 0 < chunk.end <= length):
            return False
        end = chunk.end
    return bool(chunks) and end == length


def _unusable(why: str) -> InvalidInput:
    return InvalidInput("vectors can't be used", why, "Leave the field out, and the memory is embedded anew")
