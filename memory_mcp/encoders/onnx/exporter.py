"""Exports a model to ONNX, once, with torch, so that `onnx.models` can load it without torch.

The complete pipeline of sentence-transformers is exported, with pooling and activation, and its results are compared with those of the
code that loads the model with torch in the server. A model whose results differ is refused.
"""

import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_mcp.encoders.failures import first_line
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.model_families import NO_PREFIXES, Prefixes, prefixes_for, traits_of
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.export_directory import Export, Padding, Precision
from memory_mcp.encoders.onnx.models import OnnxCrossEncoder, OnnxEmbeddings
from memory_mcp.encoders.onnx.tokenization import Tokenizers
from memory_mcp.encoders.spread import built_in, spread_of
from memory_mcp.encoders.torch.models import TorchCrossEncoder, TorchEmbeddings, prepare_torch
from memory_mcp.errors import EncoderFailed

if TYPE_CHECKING:
    from torch import Tensor

OPSET = 17
TOLERANCE = 1e-4  # int8 changes results a hundred times as much
MAX_BYTES = 2_000_000_000  # the limit of one file of the format
MIN_TABLE_BYTES = 10_000  # smaller tables aren't worth a file
QUANTIZED = ["MatMul", "Gemm", "Gather"]  # Gather is the token table, most of a small model
# Passages whose scores by fp32 differ by less may change order in int8. So many pairs must differ by more, so that their order proves something.
SAME_SCORE, MIN_DISTINCT_PAIRS = 0.01, 14
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
    """Exports an embedding model to the directory `target`, replacing it, and returns the content of its export.json.

    Raises:
        EncoderFailed: the model can't be exported, or the export gives other results than torch.
    """
    prefixes, traits = prefixes_for(name, source), traits_of(name, source)
    with _as_encoder_failed(name), _replacing(target) as directory:
        reference = TorchEmbeddings(source, "cpu", prefixes, name, traced=False)
        if reference.input_tokens is None:
            raise EncoderFailed("{} can't be exported", "it has no transformer", "It is fast with torch as well", name)
        export = _manifest("embedder", name, source, reference.input_tokens, prefixes)
        export = replace(_write_model(reference.model, "sentence_embedding", directory, export), dimension=reference.dimension)
        exported, quick = (OnnxEmbeddings(directory, precision, Tokenizers(), export) for precision in export_directory.FILE_NAMES)
        differences = [_difference(reference.embed_documents([text]), exported.embed_documents([text])) for text in SAMPLES] + [
            _difference(reference.embed_queries(list(SAMPLES[:4])), exported.embed_queries(list(SAMPLES[:4])))
        ]
        alike = same_order(_cosines(exported, traits.languages), _cosines(quick, traits.languages))
        return _verified(replace(export, int8_alike=alike), differences, directory)


def export_reranker(name: str, source: Path, target: Path) -> Export:
    """Exports a cross-encoder, as `export_embedder` does."""
    languages = traits_of(name, source).languages
    with _as_encoder_failed(name), _replacing(target) as directory:
        reference = TorchCrossEncoder(source, "cpu", name, traced=False)
        export = _manifest("reranker", name, source, reference.max_tokens, NO_PREFIXES)
        export = _write_model(reference.model, "scores", directory, export)
        exported, quick = (OnnxCrossEncoder(directory, precision, Tokenizers(), export) for precision in export_directory.FILE_NAMES)
        pairs = [(SAMPLES[number % 3], text) for number, text in enumerate(SAMPLES)] + [(SAMPLES[-1], SAMPLES[-1])]
        differences = [_difference(reference([pair]), exported([pair])) for pair in pairs]
        asked = [[(question, passage) for passage in passages] for question, passages in built_in(languages)]
        alike = same_order([exported(pairs) for pairs in asked], [quick(pairs) for pairs in asked])
        export = replace(export, spread=spread_of(exported, languages), int8_alike=alike)
        return _verified(export, [*differences, _difference(reference(pairs[:5]), exported(pairs[:5]))], directory)


def same_order(exact: Iterable[Sequence[float]], quick: Iterable[Sequence[float]]) -> float | None:
    """The share of the pairs of a question's passages, clearly different by their `exact` scores, that the `quick` ones put in the same order.

    None if there are too few: by chance, noise agrees with scores that are nearly equal.
    """
    kept: list[bool] = []
    for scores, others in zip(exact, quick, strict=True):
        left, right = np.triu_indices(len(scores), 1)
        gaps, found = (values[left] - values[right] for values in (np.asarray(scores), np.asarray(others)))
        kept.extend((found * gaps > 0)[np.abs(gaps) > SAME_SCORE].tolist())
    return round(float(np.mean(kept)), 4) if len(kept) >= MIN_DISTINCT_PAIRS else None


def _cosines(model: OnnxEmbeddings, languages: Sequence[str] | None) -> list[Sequence[float]]:
    """A row for each built-in question, with the cosine of each of its passages."""
    return [
        [float(model.embed_query(question) @ vector) for vector in model.embed_documents(list(passages))]
        for question, passages in built_in(languages)
    ]


def _manifest(role: Role, name: str, source: Path, max_tokens: int, prefixes: Prefixes) -> Export:
    """The content of export.json, as far as it is known before anything is written."""
    return Export(
        role=role,
        model=name,
        fingerprint=availability.fingerprint(source),
        dimension=None,
        max_tokens=max_tokens,
        query_prefix=prefixes.query,
        document_prefix=prefixes.document,
        prefix_version=prefixes.version,
        inputs=(),
        padding=Padding(0, "", 0, "right"),
        truncation_side="right",
        difference=0.0,
        sha256={},
    )


def _write_model(model: Any, output: str, directory: Path, export: Export) -> Export:
    """Writes tokenizer, fp32 and int8 of a SentenceTransformer or CrossEncoder whose last module returns `output`."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(model[0], "auto_model"):
        raise EncoderFailed("{} can't be exported", "it has no fast tokenizer, or no transformer", "", export.model)
    if sum(weights.numel() * weights.element_size() for weights in model.parameters()) > MAX_BYTES:
        raise EncoderFailed("{} can't be exported", "it has more than 2 GB, which one file can't hold", "", export.model)
    backend.save(str(directory / export_directory.TOKENIZER_NAME))
    features = dict(tokenizer(list(SAMPLES[1:3]), list(SAMPLES[2:4]) if output == "scores" else None, padding=True, return_tensors="pt"))
    inputs = tuple(sorted(features))
    _write_fp32(model, output, {name: features[name] for name in inputs}, directory / export_directory.FILE_NAMES["fp32"])
    _write_int8(directory)
    for precision in export_directory.FILE_NAMES:
        _move_tables_out(directory, precision)
    files = (export_directory.TOKENIZER_NAME, *export_directory.FILE_NAMES.values(), *export_directory.TABLE_NAMES.values())
    return replace(
        export,
        inputs=inputs,
        padding=Padding(tokenizer.pad_token_id, tokenizer.pad_token, tokenizer.pad_token_type_id, tokenizer.padding_side),
        truncation_side=tokenizer.truncation_side,
        sha256={name: export_directory.sha256(directory / name) for name in files if (directory / name).exists()},
    )


def _write_fp32(model: Any, output: str, features: "dict[str, Tensor]", file: Path) -> None:
    import torch  # noqa: PLC0415  takes seconds

    names = list(features)

    class Pipeline(torch.nn.Module):  # type: ignore[misc]
        """All modules of the pipeline, with the server's postprocessing of their output."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, *tensors: "Tensor") -> "Tensor":
            features: dict[str, Any] = dict(zip(names, tensors, strict=True))
            for module in self.inner:
                features = module(features)
            if output == "scores":
                return torch.sigmoid(features[output].reshape(-1))
            return torch.nn.functional.normalize(features[output], dim=-1)

    # Any number of texts, of any length. No inner node is called "answer".
    axes = {**{name: {0: "texts", 1: "tokens"} for name in names}, "answer": {0: "texts"}}
    with torch.no_grad():
        torch.onnx.export(
            Pipeline().eval(),
            tuple(features.values()),
            str(file),
            input_names=names,
            output_names=["answer"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,  # graphs of the other exporter can't be quantized
        )


def _write_int8(directory: Path) -> None:
    from onnx import TensorProto  # noqa: PLC0415  takes a second
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415  takes a second

    quantize_dynamic(
        directory / export_directory.FILE_NAMES["fp32"],
        directory / export_directory.FILE_NAMES["int8"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=QUANTIZED,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},  # of what onnxruntime's own operations return
    )


def _move_tables_out(directory: Path, precision: Precision) -> None:
    """Moves lookup tables to a file that onnxruntime maps into memory, which saves 30 to 100 MB: only the pages that texts need are read.

    The other weights stay in the model file: they are rearranged when they are loaded, and would be in memory twice.
    """
    import onnx  # noqa: PLC0415  takes a second
    from onnx.external_data_helper import set_external_data  # noqa: PLC0415

    file = directory / export_directory.FILE_NAMES[precision]
    model = onnx.load(file)
    table_names = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    for tensor in model.graph.initializer:
        if tensor.name in table_names and len(tensor.raw_data) > MIN_TABLE_BYTES:
            set_external_data(tensor, export_directory.TABLE_NAMES[precision])
    onnx.save_model(model, file)
    if (table := directory / export_directory.TABLE_NAMES[precision]).exists():
        table.chmod(file.stat().st_mode)  # it was created for its owner only


def _verified(export: Export, differences: Sequence[float], directory: Path) -> Export:
    """Writes export.json if the results of the export are close enough to those of torch."""
    difference = max(differences)
    if not difference <= TOLERANCE:
        raise EncoderFailed(
            "{} can't be exported",
            "the results of the export differ from those of torch (by up to {})",
            "",
            export.model,
            f"{difference:.2g}",
        )
    export = replace(export, difference=difference)
    export_directory.write(export, directory)
    return export


def _difference(expected: object, actual: object) -> float:
    return float(np.max(np.abs(np.asarray(expected, np.float32) - np.asarray(actual, np.float32))))


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new directory that replaces `target` when the block ends without an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.{os.getpid()}.", dir=target.parent) as temporary:
        directory = Path(temporary, "new")
        directory.mkdir()
        yield directory
        if target.exists():
            target.rename(Path(temporary, "old"))
        shutil.move(directory, target)


@contextmanager
def _as_encoder_failed(name: str) -> Iterator[None]:
    """Turns any error of a library into one sentence, and hides the warnings that the libraries make about each other."""
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
        raise EncoderFailed(
            "{} can't be exported", "{}: {}", "Use inference_backend torch", name, type(error).__name__, first_line(error)
        ) from error
    finally:
        logging.disable(before)
