"""How like a task the tasks of a persona's experiences are, by a model: on a scale that is the same for stores of every size.

    log-odds = bias + task · w₁ + content · w₂ + ahead · w₃ - w₄ · ln(experiences)

No fixed cosine tells whether two tasks are the same: one model puts all texts near each other, another far apart. So nearness is counted from what ordinary
tasks of a language share, in units of how far their nearnesses spread, and compared with that of all that is known to be another task: other experiences,
and the tasks of `tasks.toml`. How like each other a model finds these, which are all different, tells what its log-odds mean. The weights are fitted by
`python -m benchmarks.likeness --fit` (docs/decisions/0075-likeness-of-tasks.md).
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memory_mcp.encoders.models import Embedder, Vectors
from memory_mcp.store.vectors.nearness import apart, normalised

LANGUAGES: tuple[list[str], ...] = tuple(tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8")).values())
# From how many units on one task may be a part of another, so that it doesn't count against it.
ALIKE = 2.5
# Below, no task is like another.
_LEAST_UNIT = 1e-3
# The chances from which an experience is taken for one about the task, and from which it is named, that the caller may judge.
SURE, NEAR = 0.5, 0.08
# The mean and the standard deviation of the log-odds of a shipped task and the one most like it, by the model that the weights were fitted with.
_FITTED_MEAN, _FITTED_SPREAD = -2.12, 1.19


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
    """The log-odds by the weights."""
    return float(BIAS + np.dot(WEIGHTS, evidence))


@dataclass(frozen=True, slots=True)
class Ordinary:
    """The shipped tasks as vectors of a model: the centers of those that are asked for, of the languages that count, and of those that are stored, of all
    languages, of shape (languages, dimension), and which `counts` (`Centers.known`); those that it knows apart from their center, of shape (tasks, dimension);
    the unit of nearness; and how like each other the tasks are: the `mean` and the `spread` of the log-odds."""

    asked: Vectors
    stored: Vectors
    counts: tuple[bool, ...]
    tasks: Vectors
    unit: float
    mean: float = _FITTED_MEAN
    spread: float = _FITTED_SPREAD

    def chance(self, evidence: Evidence) -> float:
        """The chance that an experience is about the task, from 0 to 1."""
        return float(1 / (1 + np.exp(-(_FITTED_MEAN + (likeness(evidence) - self.mean) * _FITTED_SPREAD / self.spread))))

    def apart(self, vectors: Vectors, *, are_asked: bool = False) -> Vectors:
        """The rows without what the tasks of their language share, each of length 1; of length 0 in a language that the model does not know."""
        return apart(vectors, self.asked) if are_asked else apart(vectors, self.stored, self.counts)


# By generation, and by the languages that the model is to be asked for, and those that count.
_ORDINARY: dict[tuple[str, tuple[bool, ...], tuple[bool, ...]], Ordinary] = {}


def ordinary(embedder: Embedder) -> Ordinary:
    """Those of the languages that a model knows; embedded once, by the first call for a model.

    Raises:
        EncoderFailed: the model failed.
    """
    covered = tuple(embedder.covers(tasks[0]) for tasks in LANGUAGES)
    everything = (True,) * len(LANGUAGES)
    knows, counts = covered if any(covered) else everything, embedder.centers.known if embedder.centers else everything
    key = embedder.generation, knows, counts
    if (known := _ORDINARY.get(key)) is None:
        known = _ORDINARY[key] = _embedded(embedder, knows, counts)
    return known


def _embedded(embedder: Embedder, knows: tuple[bool, ...], counts: tuple[bool, ...]) -> Ordinary:
    stored = [embedder.embed_documents(tasks, is_awaited=True) for tasks in LANGUAGES]
    asked = [np.stack([embedder.embed_query(task) for task in tasks]) for tasks in LANGUAGES]
    of_asked, of_stored = (
        [normalised(rows - rows.mean(axis=0)) for rows, is_known in zip(kind, knows, strict=True) if is_known] for kind in (asked, stored)
    )
    tasks = np.concatenate(of_stored)
    others = ~np.eye(len(tasks), dtype=bool)
    unit = max(float((np.concatenate(of_asked) @ tasks.T)[others].std()), _LEAST_UNIT)
    centers_asked = np.stack([rows.mean(axis=0) for rows, is_counted in zip(asked, counts, strict=True) if is_counted])
    known = Ordinary(centers_asked, np.stack([rows.mean(axis=0) for rows in stored]), counts, tasks, unit)
    alike = [likeness(each) for pair in zip(of_asked, of_stored, strict=True) for each in _of_others(known, *pair)]
    return replace(known, mean=float(np.mean(alike)), spread=max(float(np.std(alike)), _LEAST_UNIT))


def _of_others(known: Ordinary, asked: Vectors, stored: Vectors) -> Iterator[Evidence]:
    """For each of the tasks of a language what speaks for the nearest other one, if all others were experiences."""
    for row, task in enumerate(asked):
        others = np.delete(stored, row, axis=0)
        owners = [(number, True) for number in range(len(others))]
        found = _evidence(replace(known, tasks=others[:0]), task, others, owners, len(others))
        yield max(found.values(), key=lambda each: each.task)


def evidence(known: Ordinary, asked: Vectors, stored: Vectors, owners: Sequence[tuple[int, bool]], experiences: int) -> dict[int, Evidence]:
    """What speaks for each experience. `asked`: the task apart from the ordinary ones, of shape (dimension,); `stored`: the vectors of experiences; `owners`:
    for each row the experience, and whether the row is of its task, and not of its text."""
    return _evidence(known, asked, known.apart(stored), owners, experiences)


def _evidence(known: Ordinary, asked: Vectors, apart: Vectors, owners: Sequence[tuple[int, bool]], experiences: int) -> dict[int, Evidence]:
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
