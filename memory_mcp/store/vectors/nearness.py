"""Vectors compared apart from what all texts of their language share."""

import numpy as np
import numpy.typing as npt

from memory_mcp.store.vectors.stored_vectors import Matrix

# How many vectors a given point counts as, compared with those near it.
POINT_WEIGHT = 100


def normalised(vectors: Matrix) -> Matrix:
    """The rows scaled to length 1, as contiguous float32, as FAISS requires."""
    rows = np.ascontiguousarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
    return np.divide(rows, np.where(lengths > 0, lengths, 1), dtype=np.float32)


def nearest_rows(vectors: Matrix, points: Matrix) -> npt.NDArray[np.int64]:
    """For each vector the row of the nearest point."""
    if not len(vectors):  # their length may be unknown
        return np.empty(0, np.int64)
    rows: npt.NDArray[np.int64] = np.argmax(vectors @ points.T - np.square(points).sum(axis=1) / 2, axis=1)
    return rows


def means_near(vectors: Matrix, points: Matrix, each: int = 1) -> Matrix:
    """For each of these points the mean of the vectors nearest to it, of shape (points, dimension), to which the point adds `POINT_WEIGHT` of its own. A
    vector counts as `each`."""
    if not len(vectors):
        return points
    nearest = nearest_rows(vectors, points)
    sums = np.stack([vectors[nearest == row].sum(axis=0) for row in range(len(points))]) * each
    counts = np.bincount(nearest, minlength=len(points)) * each
    means: Matrix = ((sums + POINT_WEIGHT * points) / (counts + POINT_WEIGHT)[:, None]).astype(np.float32)
    return means


def apart(vectors: Matrix, centers: Matrix, known: tuple[bool, ...] | None = None) -> Matrix:
    """The rows without the center of their language, each of length 1; of length 0 in a language that is not `known`."""
    if not len(vectors):
        return vectors
    language = nearest_rows(vectors, centers)
    rows = normalised(vectors - centers[language])
    return rows if known is None else rows * np.array(known, np.float32)[language][:, None]


def cosines_apart(nearness: float, vectors: Matrix, centers: Matrix, known: tuple[bool, ...]) -> Matrix:
    """For each row the cosine that a text of its language has with it if the two are so near apart from their center, of shape (rows,); more than any cosine in a
    language that is not `known`. How near any two texts of a language are is told by the length of their center."""
    shared = np.square(centers).sum(axis=1)
    cosines = np.where(known, shared + nearness * (1 - shared), np.inf)
    return np.asarray(cosines[nearest_rows(vectors, centers)], np.float32)
