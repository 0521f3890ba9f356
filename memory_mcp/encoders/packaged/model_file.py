"""Reads the package's model file: the shape, the pieces of the tokenizer, and the tensors, in 32-bit floats or in blocks of 4 bits."""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 32  # weights that share a scale
EMBEDDINGS = "embeddings"  # the input of the graph that is made of the weights
_QUANTIZED = np.dtype([("scale", "<f2"), ("weights", "u1", BLOCK // 2)])

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Quantized:
    """A matrix of 4-bit weights: `scales` of shape (rows, blocks), `weights` of shape (rows, blocks, 32) with values of 0 to 15; 8 means 0."""

    scales: Floats
    weights: npt.NDArray[np.uint8]

    def floats(self) -> Floats:
        """The weights as numbers, of shape (rows, columns)."""
        values = (self.weights.astype(np.float32) - 8) * self.scales[..., None]
        return values.reshape(*values.shape[:-2], -1)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the tokenizer needs. `pieces` and `scores` are by token id; `replacements` maps a character to what is read instead."""

    pieces: list[str]
    scores: list[float]
    unknown: int
    replacements: dict[int, str]


@dataclass(frozen=True, slots=True)
class Weights:
    """The model's shape, the ids of its special tokens, and its tensors, which stay on the disk and are read as they are used."""

    dimension: int
    layers: int
    heads: int
    inner: int
    max_tokens: int
    epsilon: float
    begin: int
    end: int
    tensors: Mapping[str, memoryview]

    def floats(self, name: str) -> Floats:
        """A tensor of 32-bit floats, flat."""
        return np.frombuffer(self.tensors[name], np.float32)

    def quantized(self, name: str, rows: "slice | npt.NDArray[np.int64]" = slice(None)) -> Quantized:
        """These rows of a matrix. A row is as wide as the model, or as its inner layer if the matrix takes that as input."""
        columns = self.inner if name.endswith("fo.w") else self.dimension
        blocks = np.frombuffer(self.tensors[name], _QUANTIZED).reshape(-1, columns // BLOCK)[rows]
        halves = blocks["weights"]
        return Quantized(blocks["scale"].astype(np.float32), np.concatenate([halves & 15, halves >> 4], -1))


class _Reader:
    """A position in the file."""

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.at = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def take(self, count: int) -> memoryview:
        self.at += count
        return self.content[self.at - count : self.at]


def read(path: Path) -> tuple[Vocabulary, Weights]:
    """Reads the file of `package.MODEL_SHA256`."""
    with path.open("rb") as file:
        reader = _Reader(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    reader.take(8)  # magic and version
    dimension, layers, heads, inner, _, max_tokens, _ = reader.numbers("7i")
    epsilon, _ = reader.numbers("fi")
    count, begin, end, _, unknown = reader.numbers("5i")
    (text_bytes,) = reader.numbers("Q")
    bounds = np.frombuffer(reader.take(4 * (count + 1)), np.uint32).tolist()
    scores = np.frombuffer(reader.take(4 * count), np.float32).tolist()
    text = bytes(reader.take(text_bytes))
    pieces = [text[start:stop].decode("utf-8", "replace") for start, stop in pairwise(bounds)]
    vocabulary = Vocabulary(pieces, scores, unknown, _replacements(reader))
    return vocabulary, Weights(dimension, layers, heads, inner, max_tokens, epsilon, begin, end, _tensors(reader))


def _replacements(reader: _Reader) -> dict[int, str]:
    count, _ = reader.numbers("iI")
    replacements: dict[int, str] = {}
    for _ in range(count):
        character, length = reader.numbers("IB")
        replacements[character] = "".join(map(chr, reader.numbers(f"{length}I")))
    return replacements


def _tensors(reader: _Reader) -> dict[str, memoryview]:
    (count,) = reader.numbers("i")
    tensors: dict[str, memoryview] = {}
    for _ in range(count):
        (length,) = reader.numbers("H")
        name = bytes(reader.take(length)).decode("ascii")
        _, _, start, size = reader.numbers("BIQQ")
        tensors[name] = reader.content[start : start + size]
    return tensors
