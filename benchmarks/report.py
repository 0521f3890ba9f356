"""Turns answers into JSON lines: figures by set, half and category, one line for each question, and comparisons of two results."""

import datetime
import json
import os
import platform
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.asking import Answer
from benchmarks.scores import METRICS, means, of_question, paired_bootstrap, rank_of, separation
from benchmarks.sets import MULTI_HOP, lines

Line = dict[str, Any]
# Lines that are only written to the file, because they would hide the figures on a screen.
QUIET = frozenset({"question"})
VECTORS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "amx_int8")


class Report:
    """Writes lines to the screen, and to a file if given."""

    def __init__(self, out: Path | None) -> None:
        self._out = out

    def add(self, lines: Iterable[Line]) -> None:
        """Prints and stores the lines."""
        for line in lines:
            text = json.dumps(line, ensure_ascii=False)
            if line["what"] not in QUIET:
                print(text, flush=True)
            if self._out:
                with self._out.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")


def machine(name: str, **facts: Any) -> Line:
    """The circumstances of a result: the kind of machine, the commit, the day."""
    git = shutil.which("git")
    head = subprocess.run([git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False) if git else None
    return {
        "what": "machine",
        "benchmark": name,
        "cores": os.cpu_count(),
        "processor": processor(Path("/proc/cpuinfo")),
        "python": platform.python_version(),
        "commit": head.stdout.strip() if head and head.returncode == 0 else None,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **facts,
    }


def processor(cpuinfo: Path) -> str:
    """The processor's name and its vector instructions, on which the speed of int8 depends. `cpuinfo`: Linux's cpuinfo."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = [flag for flag in VECTORS if flag in facts.get("flags", "").split()]
    return " ".join(filter(None, [platform.machine(), facts.get("model name"), *flags]))


def summary(name: str, variant: str, answers: Sequence[Answer]) -> Iterator[Line]:
    """All lines of one set with one variant."""
    have = [answer for answer in answers if answer.question.relevant]
    scored = {answer.question.id: of_question(answer.question.relevant, answer.ranked) for answer in have}
    heading = {"set": name, "variant": variant}
    for group, part in _groups(have):
        yield {"what": "quality", **heading, **group, "n": len(part), **means([scored[answer.question.id] for answer in part])}
    yield from ({"what": line["what"], **heading, **line} for line in (*_chains(have), *_changes(have), *_abstention(answers)))
    ran = Counter((answer.mode, answer.reranked) for answer in answers)
    reasons = Counter(reason for answer in answers for reason in answer.degraded)
    counted = {f"{mode}, reranked={done}": count for (mode, done), count in ran.items()}
    yield {"what": "answers", **heading, "counted": counted, **({"degraded": dict(reasons)} if reasons else {})}
    for answer in answers:
        asked = answer.question
        facts = {"id": asked.id, "category": asked.category, **({"half": asked.half} if asked.half else {}), "best": answer.best_score}
        yield {"what": "question", **heading, **facts, **_rounded(scored.get(asked.id, {}))}


def _groups(answers: Sequence[Answer]) -> Iterator[tuple[Line, list[Answer]]]:
    """All, each half where there are two, and each category where there are several."""
    yield {"category": "all"}, list(answers)
    halves, categories = defaultdict(list), defaultdict(list)
    for answer in answers:
        halves[answer.question.half].append(answer)
        categories[answer.question.category].append(answer)
    if len(halves) > 1:
        yield from (({"category": "all", "half": half}, halves[half]) for half in sorted(halves))
    if len(categories) > 1:
        yield from (({"category": category}, categories[category]) for category in sorted(categories))


def _chains(answers: Sequence[Answer]) -> Iterator[Line]:
    """How often the last memory of a chain, which contains the answer, is among the first ranks."""
    ranks = [rank_of(answer.question.relevant[-1:], answer.ranked) for answer in answers if answer.question.category == MULTI_HOP]
    if ranks and answers[0].question.half:  # other sets don't mark the last one
        yield {
            "what": "chains",
            "n": len(ranks),
            **{f"answer in {k}": _share(rank is not None and rank <= k for rank in ranks) for k in (1, 5, 10)},
        }


def _changes(answers: Sequence[Answer]) -> Iterator[Line]:
    """How often a current fact ranks before an outdated one."""
    pairs = [
        (rank_of(answer.question.relevant, answer.ranked), rank_of(answer.question.outdated, answer.ranked))
        for answer in answers
        if answer.question.outdated
    ]
    if pairs:
        yield {
            "what": "changes of mind",
            "n": len(pairs),
            "current first": _share(new is not None and (old is None or new < old) for new, old in pairs),
        }


def _abstention(answers: Sequence[Answer]) -> Iterator[Line]:
    """How well the best score separates answerable questions from unanswerable ones, and how many hits the latter have on average."""
    have = [answer.best_score for answer in answers if answer.question.relevant]
    unanswerable = [answer for answer in answers if not answer.question.relevant]
    lack = [answer.best_score for answer in unanswerable]
    if have and lack:
        separated = separation(have, lack)
        spread = {
            kind: [round(float(value), 4) for value in np.quantile(scores, (0, 0.25, 0.5, 0.75, 1))]
            for kind, scores in (("answerable", have), ("nobody said", lack))
        }
        yield {
            "what": "abstention",
            "n": len(lack),
            "auroc": separated.auroc,
            "accuracy": separated.accuracy,
            "threshold": separated.threshold,
            "noise": round(float(np.mean([len(answer.ranked) for answer in unanswerable])), 2),
            "quartiles": spread,
        }


def compared(before: Path, after: Path, variants: Sequence[str] | None, resamples: int) -> Iterator[Line]:
    """The difference after − before on the questions in both results, per set, variant and metric."""
    earlier, later = _by_question(before), _by_question(after)
    pairs = [tuple(variants)] if variants else sorted({(variant, variant) for _, variant in earlier.keys() & later.keys()})
    for first, second in pairs:
        for name in sorted(
            {set_name for set_name, variant in earlier if variant == first} & {set_name for set_name, variant in later if variant == second}
        ):
            old, new = earlier[name, first], later[name, second]
            shared = sorted(old.keys() & new.keys())
            for metric in METRICS:
                difference = paired_bootstrap([old[key][metric] for key in shared], [new[key][metric] for key in shared], resamples)
                yield {
                    "what": "difference", "set": name, "before": first, "after": second, "metric": metric, "n": len(shared),
                    "difference": difference.mean, "low": difference.low, "high": difference.high, "p": difference.p,
                }  # fmt: skip


def ablated(name: str, variant: str, full: Sequence[Answer], answers: Sequence[Answer]) -> Line:
    """What the answers lose, or gain, without a part: recall without it minus with it, how many questions have any right memory first and among
    five, how many top tens changed, and how many hits questions get that nobody answered."""
    pairs = [(with_it, without) for with_it, without in zip(full, answers, strict=True) if with_it.question.relevant]
    scores = [tuple(of_question(answer.question.relevant, answer.ranked) for answer in pair) for pair in pairs]
    differences = {
        metric: paired_bootstrap([before[metric] for before, _ in scores], [after[metric] for _, after in scores])
        for metric in ("R@5", "R@10")
    }
    ranks = [rank_of(without.question.relevant, without.ranked) for _, without in pairs]
    unanswered = [len(answer.ranked) for answer in answers if not answer.question.relevant]
    return {
        "what": "ablation", "set": name, "variant": variant, "n": len(pairs),
        **{f"{metric} {edge}": getattr(difference, edge) for metric, difference in differences.items() for edge in ("mean", "low", "high")},
        "first": sum(rank == 1 for rank in ranks), "in five": sum(rank is not None and rank <= 5 for rank in ranks),
        "top tens changed": sum(with_it.ranked[:10] != without.ranked[:10] for with_it, without in pairs),
        **({"noise": round(float(np.mean(unanswered)), 2)} if unanswered else {}),
    }  # fmt: skip


def _by_question(file: Path) -> dict[tuple[str, str], dict[str, Line]]:
    """The lines of questions that have an answer, by (set, variant) and id. Of two runs in one file the later one counts."""
    questions: dict[tuple[str, str], dict[str, Line]] = defaultdict(dict)
    for line in lines(file):
        if line["what"] == "question" and METRICS[0] in line:
            questions[line["set"], line["variant"]][line["id"]] = line
    return questions


def _share(held: Iterable[bool]) -> float:
    return round(float(np.mean(list(held))), 4)


def _rounded(scores: dict[str, float]) -> dict[str, float]:
    return {metric: round(value, 4) for metric, value in scores.items()}
