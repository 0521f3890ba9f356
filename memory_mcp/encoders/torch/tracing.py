"""Traces a model's forward pass with torch.jit, so that it runs as one call without the interpreter.

Run op by op, a pass acquires and releases the interpreter lock about a hundred times, and next to forty busy threads each time means
waiting: an embedding of 13 ms took 1.5 s. A traced pass does so once. Its results are the same, which is checked for each
model: one that can't be traced, or gives other results when traced, keeps its own forward pass.
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
# The trace must work for other numbers of texts and other lengths, with padding and without.
_SAMPLES = (
    ["今日は誰と話しましたか。"],
    ["うん", "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 3, "I like coffee, and he does not."],
    ["猫", "犬"],
    ["長い話をしよう。" * 60],
)

logger = logging.getLogger(__name__)


def trace(model: "PreTrainedModel", tokenize: Callable[[list[str]], "Features"]) -> bool:
    """Replaces a model's forward pass by its trace; returns whether it did. `tokenize` makes the model's features, on its device."""
    import torch  # noqa: PLC0415  takes seconds, and is needed only to load a model

    eager = model.forward
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # about shapes that might become constants, which is checked below
            traced = _traced(model, tokenize(_SAMPLES[1]))
            equal = _results_equal(eager, traced, tokenize)
    except Exception as error:  # noqa: BLE001  each architecture fails in its own way, some only with another shape
        logger.info("a model runs op by op, because it can't be traced: %s", error)
        return False
    if not equal:
        logger.info("a model runs op by op, because its trace gives other results")
        return False
    model.forward = traced
    return True


def _traced(model: "PreTrainedModel", features: "Features") -> Callable[..., Any]:
    """A forward pass that runs the trace for the tensors it was made with, and the model's own pass for any others."""
    import torch  # noqa: PLC0415  see `trace`

    eager = model.forward
    names = sorted(features)
    outputs = list(model(**features, return_dict=True))

    class TensorPass(torch.nn.Module):  # type: ignore[misc]
        """The forward pass with tensors as arguments and as results."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, *tensors: "Tensor") -> tuple["Tensor", ...]:
            output = self.inner(**dict(zip(names, tensors, strict=True)), return_dict=True)
            return tuple(output[name] for name in outputs)

    traced = torch.jit.trace(TensorPass().eval(), tuple(features[name] for name in names), check_trace=False)

    def forward(**arguments: Any) -> Any:
        tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        if sorted(tensors) != names:
            return eager(**arguments)
        try:
            results = traced(*(tensors[name] for name in names))
        except RuntimeError as error:
            raise _what_failed(error) from None
        return _as_output(outputs, results)

    return forward


def _what_failed(error: RuntimeError) -> RuntimeError:
    """The error inside a trace, which torch reports as `RuntimeError` in the middle of a listing of the model."""
    import torch  # noqa: PLC0415  see `trace`

    lines = [line.removeprefix("RuntimeError: ") for line in str(error).splitlines() if line.strip()] or [""]
    full = next((line for line in lines if "out of memory" in line), None)
    return torch.OutOfMemoryError(full) if full else RuntimeError(lines[-1])


def _as_output(names: list[str], tensors: "tuple[Tensor, ...]") -> Any:
    from transformers.utils import ModelOutput  # noqa: PLC0415  see `trace`

    return ModelOutput(zip(names, tensors, strict=True))


def _results_equal(eager: Callable[..., Any], traced: Callable[..., Any], tokenize: Callable[[list[str]], "Features"]) -> bool:
    import torch  # noqa: PLC0415  see `trace`

    with torch.inference_mode():
        for texts in _SAMPLES:
            features = tokenize(texts)
            eager_output, traced_output = eager(**features, return_dict=True), traced(**features, return_dict=True)
            # Values at padding are arbitrary and unused.
            attended = features["attention_mask"].bool()
            for name, expected in eager_output.items():
                actual = traced_output[name]
                if expected.shape[:2] == attended.shape and expected.dim() == 3:
                    expected, actual = expected[attended], actual[attended]  # noqa: PLW2901
                if not torch.allclose(expected, actual, atol=TOLERANCE, rtol=TOLERANCE):
                    return False
    return True
