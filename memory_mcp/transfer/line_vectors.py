"""The `vectors` field of a JSON line: an import that has it need not embed the memory again."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from memory_mcp.domain import Chunk, Draft, Embedded
from memory_mcp.errors import InvalidInput

# The dimension of each generation with a loaded model.
Generations = Mapping[str, int]

FLOAT = np.dtype("<f4")
# Vectors have length 1; a little more than the rounding error of float32.
LENGTH_TOLERANCE = 1e-3


def as_json(embedded: Embedded) -> dict[str, Any]:
    """The field's object: `generation`, `pieces` (start and end in characters, or the text of a question), and `values`, the vectors as
    base64 of little-endian float32."""
    pieces = [*([chunk.start, chunk.end] for chunk in embedded.chunks), *embedded.questions]
    return {"generation": embedded.generation, "pieces": pieces, "values": base64.b64encode(embedded.vectors).decode()}


def embedded_in(field: Mapping[str, Any], draft: Draft, generations: Generations) -> Embedded | None:
    """The vectors of a line; None if no loaded model has their generation, so that the memory is embedded again.

    Raises:
        InvalidInput: the field is not as an export writes it, or is not of this memory.
    """
    generation, pieces, values = (field.get(name) for name in ("generation", "pieces", "values"))
    if not isinstance(generation, str) or not isinstance(pieces, list) or not isinstance(values, str):
        raise _unusable("it must have generation, pieces and values")
    dimension = generations.get(generation)
    if dimension is None:
        return None
    chunks = tuple(Chunk(*piece) for piece in pieces if _is_span(piece))
    questions = tuple(piece for piece in pieces if isinstance(piece, str))
    if not _covers(chunks, len(draft.content)) or set(questions) != set(draft.questions) or len(questions) != len(set(questions)):
        raise _unusable("the pieces don't match this memory")
    if [*([chunk.start, chunk.end] for chunk in chunks), *questions] != pieces:
        raise _unusable("the pieces are not in order")
    return Embedded(generation, dimension, chunks, questions, _checked(values, len(pieces), dimension))


def _checked(values: str, pieces: int, dimension: int) -> bytes:
    try:
        blob = base64.b64decode(values, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unusable("the values are not base64") from error
    if len(blob) != pieces * dimension * FLOAT.itemsize:
        raise _unusable(f"{pieces} vectors of dimension {dimension} are expected")
    lengths = np.linalg.norm(np.frombuffer(blob, FLOAT).reshape(pieces, dimension), axis=1)
    if not (np.abs(lengths - 1) < LENGTH_TOLERANCE).all():  # false for NaN and infinity too
        raise _unusable("a vector doesn't have length 1")
    return blob


def _is_span(piece: object) -> bool:
    return isinstance(piece, list) and len(piece) == 2 and all(type(offset) is int for offset in piece)


def _covers(chunks: tuple[Chunk, ...], length: int) -> bool:
    """Whether the chunks cover a text of this length in order and without gaps."""
    end = 0
    for chunk in chunks:
        if not (0 <= chunk.start <= end < chunk.end <= length) and not (chunk.start == end == 0 < chunk.end <= length):
            return False
        end = chunk.end
    return bool(chunks) and end == length


def _unusable(why: str) -> InvalidInput:
    return InvalidInput("vectors can't be used", why, "Omit the field to have the memory embedded again")
