"""A model's forward pass as one call that needs no interpreter.

Run op by op, a pass takes and lets go of the interpreter some hundred times, and beside forty busy threads each time means
waiting: an embedding of 13 ms took 1.5 s. Traced, it does so once. The numbers are the same, and that is checked for each
model: one that can't be traced, or answers otherwise then, runs as before.
"""

import logging
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    Features = dict[str, Tensor]

TOLERANCE = 1e-4
# What a trace has to get right: another number of texts, another length, with padding and without.
_SAMPLES = (
    ["今日は誰と話しましたか。"],
    ["うん", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 3, "I like coffee, and he does not."],
    ["猫", "犬"],
    ["長い話をしよう。" * 60],
)

logger = logging.getLogger(__name__)


def trace(model: "PreTrainedModel", tokenize: Callable[[list[str]], "Features"]) -> bool:
    """Replaces the forward pass of a model on the CPU by its trace; whether that could be done. `tokenize` makes its features."""
    import torch  # noqa: PLC0415  takes seconds, and only who loads a model needs it

    eager = model.forward
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of shapes that might become constants: that is what is checked
            quick = _traced(model, tokenize(_SAMPLES[1]))
            same = _same(eager, quick, tokenize)
    except Exception as error:  # noqa: BLE001  each architecture fails in its own way, some only with another shape
        logger.info("a model runs op by op, because it can't be traced: %s", error)
        return False
    if not same:
        logger.info("a model runs op by op, because its trace answers otherwise")
        return False
    model.forward = quick
    return True


def _traced(model: "PreTrainedModel", features: "Features") -> Callable[..., Any]:
    """A forward pass that runs the trace for the tensors it was made with, and the model's own for any other."""
    import torch  # noqa: PLC0415  see `trace`

    eager = model.forward
    names = sorted(features)
    outputs = list(model(**features, return_dict=True))

    class Plain(torch.nn.Module):
        """The pass with tensors for arguments, and for results."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, *tensors: "Tensor") -> tuple["Tensor", ...]:
            found = self.inner(**dict(zip(names, tensors, strict=True)), return_dict=True)
            return tuple(found[name] for name in outputs)

    traced = torch.jit.trace(Plain().eval(), tuple(features[name] for name in names), check_trace=False)  # type: ignore[no-untyped-call]

    def forward(**given: Any) -> Any:
        tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        if sorted(tensors) != names:
            return eager(**given)
        return _as_output(outputs, traced(*(tensors[name] for name in names)))

    return forward


def _as_output(names: list[str], tensors: "tuple[Tensor, ...]") -> Any:
    from transformers.utils import ModelOutput  # type: ignore[attr-defined]  # noqa: PLC0415  see `trace`

    return ModelOutput(zip(names, tensors, strict=True))  # type: ignore[no-untyped-call]


def _same(eager: Callable[..., Any], traced: Callable[..., Any], tokenize: Callable[[list[str]], "Features"]) -> bool:
    import torch  # noqa: PLC0415  see `trace`

    with torch.inference_mode():
        for texts in _SAMPLES:
            features = tokenize(texts)
            expected, found = eager(**features, return_dict=True), traced(**features, return_dict=True)
            # What stands at padding is anything at all, and nobody reads it.
            read = features["attention_mask"].bool()
            for name, wanted in expected.items():
                got = found[name]
                if wanted.shape[:2] == read.shape and wanted.dim() == 3:
                    wanted, got = wanted[read], got[read]  # noqa: PLW2901
                if not torch.allclose(wanted, got, atol=TOLERANCE, rtol=TOLERANCE):
                    return False
    return True
