"""How like a task the tasks of a persona's experiences are, by a model: on a scale that is the same for stores of every size.

    log-odds = bias + task · w₁ + content · w₂ + ahead · w₃ - w₄ · ln(experiences)

No fixed cosine tells whether two tasks are the same: one model puts all texts near each other, another far apart. So nearness is counted from what ordinary
tasks of a language share, in units of how far their nearnesses spread, and compared with that of all that is known to be another task: other experiences,
and the tasks of `tasks.toml`. The weights are fitted by `python -m benchmarks.experience --fit` (docs/decisions/0075-likeness-of-tasks.md).
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.models import Embedder, Vectors
from memory_mcp.store.vectors.faiss_index import nearest_rows, normalised

LANGUAGES: tuple[list[str], ...] = tuple(tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8")).values())
# From how many units on one task may be a part of another, so that it doesn't count against it.
ALIKE = 2.5
# Below, no task is like another.
_LEAST_UNIT = 1e-3
# The chances from which an experience is taken for one about the task, and from which it is named, that the caller may judge.
SURE, NEAR = 0.5, 0.08
# The models that the weights were measured with. Another one may put "Translate a poem" near "Translate the manual": of what it finds only that is sure
# which also has this cosine, apart from what ordinary tasks share.
_MEASURED, _SAME_TASK = re.compile("multilingual-e5"), 0.7


class Evidence(NamedTuple):
    """What speaks for an experience, in units of the model: how near its task is to the one asked for, how near its whole text is, and how much nearer its
    task is than the nearest of other tasks. `experiences`: the logarithm of how many there are, among which a near one is found by chance."""

    task: float
    content: float
    ahead: float
    experiences: float


BIAS = -2.85
WEIGHTS = Evidence(task=0.96, content=0.84, ahead=0.57, experiences=-0.74)


def likeness(evidence: Evidence) -> float:
    """The same as a chance from 0 to 1, by the weights."""
    return float(1 / (1 + np.exp(-(BIAS + np.dot(WEIGHTS, evidence)))))


@dataclass(frozen=True, slots=True)
class Ordinary:
    """The shipped tasks as vectors of a model: the centers of those that are asked for and of those that are stored, by language, of shape (languages,
    dimension); all of them apart from these, of shape (tasks, dimension); the unit of nearness; and whether the weights were measured with the model."""

    asked: Vectors
    stored: Vectors
    tasks: Vectors
    unit: float
    is_measured: bool = True

    def chance(self, evidence: Evidence) -> float:
        """The chance that an experience is about the task, from 0 to 1."""
        is_known = self.is_measured or evidence.task * self.unit >= _SAME_TASK
        return likeness(evidence) if is_known else min(likeness(evidence), SURE - 0.01)

    def apart(self, vectors: Vectors, *, are_asked: bool = False) -> Vectors:
        """The rows without what the tasks of their language share, each of length 1."""
        centers = self.asked if are_asked else self.stored
        return normalised(vectors - centers[nearest_rows(vectors, centers)])


# By generation, and by the languages that the model is to be asked for.
_ORDINARY: dict[tuple[str, tuple[bool, ...]], Ordinary] = {}


def ordinary(embedder: Embedder) -> Ordinary:
    """Those of the languages that a model knows; embedded once, by the first call for a model.

    Raises:
        EncoderFailed: the model failed.
    """
    key = embedder.generation, tuple(embedder.covers(tasks[0]) for tasks in LANGUAGES)
    if (known := _ORDINARY.get(key)) is None:
        known = _ORDINARY[key] = _embedded(embedder)
    return known


def _embedded(embedder: Embedder) -> Ordinary:
    languages = [tasks for tasks in LANGUAGES if embedder.covers(tasks[0])] or LANGUAGES
    stored = [embedder.embed_documents(tasks, is_awaited=True) for tasks in languages]
    asked = [np.stack([embedder.embed_query(task) for task in tasks]) for tasks in languages]
    of_asked, of_stored = (np.concatenate([normalised(rows - rows.mean(axis=0)) for rows in kind]) for kind in (asked, stored))
    others = ~np.eye(len(of_stored), dtype=bool)
    unit = max(float((of_asked @ of_stored.T)[others].std()), _LEAST_UNIT)
    is_measured = _MEASURED.match(own_name(embedder.name)) is not None
    return Ordinary(
        np.stack([rows.mean(axis=0) for rows in asked]), np.stack([rows.mean(axis=0) for rows in stored]), of_stored, unit, is_measured
    )


def evidence(known: Ordinary, asked: Vectors, stored: Vectors, owners: Sequence[tuple[int, bool]], experiences: int) -> dict[int, Evidence]:
    """What speaks for each experience. `asked`: the task apart from the ordinary ones, of shape (dimension,); `stored`: the vectors of experiences; `owners`:
    for each row the experience, and whether the row is of its task, and not of its text."""
    apart = known.apart(stored)
    nearness = (apart @ asked) / known.unit
    best: dict[int, int] = {}
    content: dict[int, float] = {}
    nearest_first = np.argsort(-nearness, kind="stable").tolist()
    for row in nearest_first:
        experience, is_task = owners[row]
        if is_task:
            best.setdefault(experience, row)
        else:
            content.setdefault(experience, float(nearness[row]))
    for row in nearest_first:
        best.setdefault(owners[row][0], row)  # of one that has only a text
    rows = list(best.values())
    others = np.concatenate([apart[rows], known.tasks])
    near = np.concatenate([nearness[rows], (known.tasks @ asked) / known.unit])
    is_other = (apart[rows] @ others.T) / known.unit < ALIKE
    nearest_other = np.where(is_other, near, -np.inf).max(axis=1)
    return {
        experience: Evidence(
            float(nearness[row]),
            content.get(experience, float(nearness[row])),
            float(nearness[row] - other) if np.isfinite(other) else 0.0,
            float(np.log(max(experiences, 1))),
        )
        for (experience, row), other in zip(best.items(), nearest_other.tolist(), strict=True)
    }
