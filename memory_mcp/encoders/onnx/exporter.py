"""Writing a model as ONNX, once, with torch: what `onnx_models` loads later without it.

The whole of sentence-transformers' pipeline is exported, with its pooling and the activation, and what the file answers is compared
with what the very code answers that the server would load the model by. A model that differs is refused.
"""

import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.model_families import NONE, Prefixes, prefixes_for
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import Export, Padding, Precision
from memory_mcp.encoders.onnx.models import OnnxCrossEncoder, OnnxEmbeddings
from memory_mcp.encoders.onnx.tokenization import Tokenizers
from memory_mcp.encoders.torch.models import LoadedCrossEncoder, load_embeddings, prepare_torch
from memory_mcp.errors import EncoderFailed

if TYPE_CHECKING:
    from torch import Tensor

OPSET = 17
TOLERANCE = 1e-4  # what int8 changes is a hundred times that
LARGEST_BYTES = 2_000_000_000  # what one file of the format can hold
TABLE_BYTES = 10_000  # smaller ones aren't worth a file
QUANTISED = ["MatMul", "Gemm", "Gather"]  # the last one is the table of tokens: most of a small model
SAMPLES = (
    "今日は誰と話しましたか。",
    "うん",
    "昨日は京都へ行って、夕飯に蕎麦を食べました。" * 3,
    "I like coffee, and he does not.",
    "  blanks and\nlines \t",
    "🎂",
    "",
    "長い話をしよう。 A long story. " * 150,
)


def export_embedder(name: str, source: Path, target: Path) -> Export:
    """Writes an embedding model into `target`, in place of what was there, and returns what its export.json says.

    Raises:
        EncoderFailed: it can't be exported, or what was exported answers otherwise.
    """
    prefixes = prefixes_for(name, source)
    with _refusing(name), _put_in_place(target) as place:
        reference = load_embeddings(source, "cpu", prefixes, name)
        if reference.reads_tokens is None:
            raise EncoderFailed(f"{name} can't be exported", "it has no transformer", "It is quick with torch as well")
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415  takes seconds

        # Another copy than the reference, whose pass is traced already.
        model = SentenceTransformer(str(source), device="cpu", local_files_only=True)
        export = _written(model, "sentence_embedding", place, _about("embedder", name, source, reference.reads_tokens, prefixes))
        export = replace(export, dimension=reference.dimension, pooling=_pooling(model))
        ours = OnnxEmbeddings(place, "fp32", Tokenizers(), export)
        differences = [_difference(reference.model.embed_documents([text]), ours.embed_documents([text])) for text in SAMPLES] + [
            _difference(reference.queries(list(SAMPLES[:4])), ours.embed_queries(list(SAMPLES[:4])))
        ]
        return _finished(export, differences, place)


def export_reranker(name: str, source: Path, target: Path) -> Export:
    """The same for a cross-encoder."""
    with _refusing(name), _put_in_place(target) as place:
        reference = LoadedCrossEncoder(source, "cpu", name)
        from sentence_transformers import CrossEncoder  # noqa: PLC0415  takes seconds

        model = CrossEncoder(str(source), device="cpu", local_files_only=True)
        export = _written(model, "scores", place, _about("reranker", name, source, reference.max_tokens, NONE))
        ours = OnnxCrossEncoder(place, "fp32", Tokenizers(), export)
        pairs = [(SAMPLES[number % 3], text) for number, text in enumerate(SAMPLES)] + [(SAMPLES[-1], SAMPLES[-1])]
        differences = [_difference(reference([pair]), ours([pair])) for pair in pairs]
        return _finished(export, [*differences, _difference(reference(pairs[:5]), ours(pairs[:5]))], place)


def _about(role: Role, name: str, source: Path, max_tokens: int, prefixes: Prefixes) -> Export:
    """What is known before anything is written."""
    return Export(
        role=role,
        model=name,
        fingerprint=availability.fingerprint(source),
        dimension=None,
        max_tokens=max_tokens,
        query_prefix=prefixes.query,
        document_prefix=prefixes.document,
        prefix_version=prefixes.version,
        pooling=None,
        normalised=role == "embedder",
        activation="sigmoid" if role == "reranker" else None,
        inputs=(),
        padding=Padding(0, "", 0, "right"),
        truncation_side="right",
        opset=OPSET,
        difference=0.0,
        sha256={},
    )


def _written(model: Any, output: str, place: Path, export: Export) -> Export:
    """Writes tokenizer, fp32 and int8 of a SentenceTransformer or CrossEncoder whose last module gives `output`."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(model[0], "auto_model"):
        raise EncoderFailed(f"{export.model} can't be exported", "its tokenizer has no fast form, or it has no transformer")
    if sum(weights.numel() * weights.element_size() for weights in model.parameters()) > LARGEST_BYTES:
        raise EncoderFailed(f"{export.model} can't be exported", "it has more than 2 GB, which one file can't hold")
    backend.save(str(place / export_directory.TOKENIZER_NAME))
    features = dict(tokenizer(list(SAMPLES[1:3]), list(SAMPLES[2:4]) if output == "scores" else None, padding=True, return_tensors="pt"))
    inputs = tuple(sorted(features))
    _write_fp32(model, output, {name: features[name] for name in inputs}, place / export_directory.FILE_NAMES["fp32"])
    _write_int8(place)
    for precision in export_directory.FILE_NAMES:
        _put_table_aside(place, precision)
    files = (export_directory.TOKENIZER_NAME, *export_directory.FILE_NAMES.values(), *export_directory.TABLE_NAMES.values())
    return replace(
        export,
        inputs=inputs,
        padding=Padding(tokenizer.pad_token_id, tokenizer.pad_token, tokenizer.pad_token_type_id, tokenizer.padding_side),
        truncation_side=tokenizer.truncation_side,
        sha256={name: export_directory.sha256(place / name) for name in files if (place / name).exists()},
    )


def _write_fp32(model: Any, output: str, features: "dict[str, Tensor]", file: Path) -> None:
    import torch  # noqa: PLC0415  takes seconds

    names = list(features)

    class Whole(torch.nn.Module):
        """All modules of the pipeline, and what the server would do with their answer."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, *tensors: "Tensor") -> "Tensor":
            found: dict[str, Any] = dict(zip(names, tensors, strict=True))
            for module in self.inner:
                found = module(found)
            if output == "scores":
                return torch.sigmoid(found[output].reshape(-1))
            return torch.nn.functional.normalize(found[output], dim=-1)

    # Any number of texts, of any length. The answer's name is one that no node inside has.
    axes = {**{name: {0: "texts", 1: "tokens"} for name in names}, "answer": {0: "texts"}}
    with torch.no_grad():
        torch.onnx.export(
            Whole().eval(),
            tuple(features.values()),
            str(file),
            input_names=names,
            output_names=["answer"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,  # the other exporter's graphs can't be quantised
        )


def _write_int8(place: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415  takes a second

    quantize_dynamic(
        place / export_directory.FILE_NAMES["fp32"],
        place / export_directory.FILE_NAMES["int8"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=QUANTISED,
    )


def _put_table_aside(place: Path, precision: Precision) -> None:
    """What is only looked up in goes into a file that onnxruntime maps: 30 to 100 MB less in memory, read as far as texts need it.

    The other weights stay inside: they are laid out anew at load, and would lie in memory twice.
    """
    import onnx  # noqa: PLC0415  takes a second
    from onnx.external_data_helper import set_external_data  # noqa: PLC0415

    file = place / export_directory.FILE_NAMES[precision]
    model = onnx.load(file)
    looked_up = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    for tensor in model.graph.initializer:
        if tensor.name in looked_up and len(tensor.raw_data) > TABLE_BYTES:
            set_external_data(tensor, export_directory.TABLE_NAMES[precision])
    onnx.save_model(model, file)
    if (table := place / export_directory.TABLE_NAMES[precision]).exists():
        table.chmod(file.stat().st_mode)  # it was made for its owner alone


def _finished(export: Export, differences: Sequence[float], place: Path) -> Export:
    difference = max(differences)
    if not difference <= TOLERANCE:
        raise EncoderFailed(
            f"{export.model} can't be exported", f"what was written answers otherwise than torch does (by up to {difference:.2g})"
        )
    export = replace(export, difference=difference)
    export_directory.write(export, place)
    return export


def _difference(expected: object, found: object) -> float:
    return float(np.max(np.abs(np.asarray(expected, np.float32) - np.asarray(found, np.float32))))


def _pooling(model: Any) -> str | None:
    """For whoever reads export.json: the graph has it already."""
    modes = (getattr(module, "pooling_mode", None) for module in model)
    return next((str(mode) for mode in modes if mode), None)


@contextmanager
def _put_in_place(target: Path) -> Iterator[Path]:
    """A directory beside `target` that takes its place once it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
        place = Path(temporary, "new")
        place.mkdir()
        yield place
        if target.exists():
            target.rename(Path(temporary, "old"))
        shutil.move(place, target)


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Whatever a library raises becomes one sentence; their warnings of each other are nobody's concern."""
    prepare_torch()
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except EncoderFailed:
        raise
    except Exception as error:  # each architecture fails in its own way
        said = next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "it did not say why")
        raise EncoderFailed(f"{name} can't be exported", f"{type(error).__name__}: {said}", "Use inference_backend torch") from error
    finally:
        logging.disable(before)
