"""A directory with an exported model: its files, its location for a model's name, its checks, and whether int8 may be used.

Nothing here imports torch or onnxruntime. `onnx.exporter` writes the directory, `onnx.models` loads it.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Found, Missing, Role
from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.packaged import package
from memory_mcp.errors import EncoderFailed
from memory_mcp.extras import is_installed
from memory_mcp.wording import sentence

# In the data directory, next to the personas: a persona's directory never begins with a dot.
DIRECTORY_NAME = ".models"
MANIFEST_NAME = "export.json"
TOKENIZER_NAME = "tokenizer.json"
FORMAT = 1

# The least agreement of int8 with fp32. Sound weights have .88 and more for an embedder, .99 for a reranker; noise has .1 and .5.
MIN_AGREEMENT: dict[Role, float] = {"embedder": 0.8, "reranker": 0.95}
AGREEMENT_MEASURE: dict[Role, str] = {
    "embedder": "of its 10 best texts are among the 10 best of fp32",
    "reranker": "of the pairs of texts with clearly different fp32 scores are in the same order",
}
MIN_CONCLUSIVE_QUERIES = 10
# With fewer texts, the ten best are too large a share of all to prove anything.
MIN_TEXTS = 50

Precision = Literal["fp32", "int8"]
FILE_NAMES: dict[Precision, str] = {"fp32": "model.onnx", "int8": "model_int8.onnx"}
# The token table of each: most of a small model, and read from the disk as needed instead of being held in memory.
TABLE_NAMES: dict[Precision, str] = {precision: f"{name}.data" for precision, name in FILE_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Agreement:
    """How similarly int8 and fp32 rank, over the `telling` ones of the `queries`: those for which fp32 gives clearly different scores.

    `alike` is the mean share that `AGREEMENT_MEASURE` describes, `spearman` the mean rank correlation; both are 0 if no query is
    telling. `own` is true if it was measured on memories, and false for built-in sentences.
    """

    texts: int
    queries: int
    spearman: float
    own: bool
    alike: float
    telling: int


@dataclass(frozen=True, slots=True)
class Padding:
    """How shorter texts of a batch are padded."""

    id: int
    token: str
    type_id: int
    side: Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Export:
    """The content of export.json.

    `fingerprint` is that of the source model, `difference` the largest difference from torch's results, `sha256` is by file name.
    `int8_accepted`: the user allows int8 without proof (`--accept-int8`). `spread`: that of a reranker's scores (`encoders.spread`); exports of earlier
    versions have none.
    """

    role: Role
    model: str
    fingerprint: str
    dimension: int | None
    max_tokens: int
    query_prefix: str
    document_prefix: str
    prefix_version: str
    pooling: str | None
    normalised: bool
    activation: str | None
    inputs: tuple[str, ...]
    padding: Padding
    truncation_side: Literal["left", "right"]
    opset: int
    difference: float
    sha256: dict[str, str]
    agreement: Agreement | None = None
    int8_accepted: bool = False
    spread: float | None = None
    format: int = FORMAT


def directory_for(name: str, role: Role, exports: Path) -> Path:
    """The directory for the export of a model. The hash keeps models of the same name from different places apart."""
    readable = re.sub(r"[^a-z0-9.-]+", "-", own_name(name)).strip("-.") or role
    return exports / f"{role}-{readable[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def find_configured(settings: Settings, name: str, role: Role, exports: Path | None) -> Found | Missing:
    """Finds a model for the configured backend: its own files for torch, its export for ONNX. The packaged one needs no export."""
    if settings.inference_backend == "torch" or (role == "embedder" and package.is_named(name)):
        return availability.find(name, role)
    exported = find(name, role, exports)
    return exported if settings.inference_backend == "onnx" or isinstance(exported, Found) else availability.find(name, role)


def find(name: str, role: Role, exports: Path | None) -> Found | Missing:
    """The directory with a model's export: `name` itself if it is one, or else a directory in `exports`."""
    if not is_installed("onnx"):
        return availability.not_installed(name, role, "onnx")
    path = Path(name).expanduser()
    if (path / MANIFEST_NAME).is_file():
        return Found(path)
    directory = directory_for(name, role, exports) if exports else None
    if directory and (directory / MANIFEST_NAME).is_file():
        if path.is_dir() and not availability.fault_of(path) and availability.fingerprint(path) != read(directory).fingerprint:
            return Missing(f"{name} has changed since it was exported. {_remedy()}.")
        return Found(directory)
    return Missing(f"{name} has not been exported to ONNX: there is no {directory or MANIFEST_NAME}. {_remedy()}.")


def read(directory: Path) -> Export:
    """Reads export.json.

    Raises:
        EncoderFailed: it can't be read, or another version wrote it.
    """
    try:
        content: dict[str, Any] = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise EncoderFailed("{} was exported by another version", "its format is {}", "{}", directory, content["format"], _remedy())
        # A measurement of an earlier version with other fields is no longer valid.
        measured = content["agreement"] or {}
        agreement = Agreement(**measured) if measured.keys() == {field.name for field in fields(Agreement)} else None
        return Export(**{**content, "padding": Padding(**content["padding"]), "inputs": tuple(content["inputs"]), "agreement": agreement})
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EncoderFailed("{} can't be read", "{}", "{}", directory / MANIFEST_NAME, type(error).__name__, _remedy()) from error


def write(export: Export, directory: Path) -> None:
    """Writes export.json, as the last file, so that a directory that has it is complete."""
    content = json.dumps(asdict(export), ensure_ascii=False, indent=2)
    temporary = directory / f".{MANIFEST_NAME}"
    temporary.write_text(content + "\n", encoding="utf-8")
    temporary.replace(directory / MANIFEST_NAME)


def checked(directory: Path, export: Export, precision: Precision) -> Path:
    """The model file of this precision, after the checksums of the file, its table and the tokenizer were verified.

    Raises:
        EncoderFailed: a file is missing or damaged.
    """
    for name in (TOKENIZER_NAME, *weight_names(export, precision)):
        file = directory / name
        if not file.is_file():
            raise EncoderFailed("{} can't be loaded", "{} is missing", "{}", export.model, file, _remedy())
        if sha256(file) != export.sha256.get(name):
            raise EncoderFailed("{} can't be loaded", "{} is damaged: its checksum differs", "{}", export.model, file, _remedy())
    return directory / FILE_NAMES[precision]


def sha256(file: Path) -> str:
    """The checksum of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def weight_names(export: Export, precision: Precision) -> list[str]:
    """The names of the files with the weights of this precision. Exports of earlier versions have the table in the model file."""
    return [name for name in (FILE_NAMES[precision], TABLE_NAMES[precision]) if name in export.sha256]


def check_agreement(export: Export) -> None:
    """Returns if int8 was shown to rank as fp32 does, or if that is unproven and the user accepts it.

    Raises:
        EncoderFailed: int8 ranks too differently, or its agreement is unproven.
    """
    refusal = sentence("{} can't be used in int8", export.model)
    if ranks_differently(export):
        alike = export.agreement.alike if export.agreement else 0.0
        raise EncoderFailed(
            refusal,
            "only {} {}, and {} are required",
            "Set onnx_precision to fp32",
            f"{alike:.0%}",
            AGREEMENT_MEASURE[export.role],
            f"{MIN_AGREEMENT[export.role]:.0%}",
        )
    missing = unproven(export)
    if missing and not export.int8_accepted:
        raise EncoderFailed(refusal, *missing)


def ranks_differently(export: Export) -> bool:
    """Whether int8 was measured and ranks too differently from fp32."""
    agreement = export.agreement
    return agreement is not None and agreement.telling >= MIN_CONCLUSIVE_QUERIES and agreement.alike < MIN_AGREEMENT[export.role]


def unproven(export: Export) -> tuple[str, str] | None:
    """Why the measurement proves nothing, and the remedy; None if it proves the agreement."""
    agreement = export.agreement
    alternative = "set onnx_precision to fp32, or accept it unproven with --accept-int8"
    if agreement is None:
        return "its ranking has not been compared with fp32", f"Run `memory-mcp models export-onnx`, {alternative}"
    if not agreement.own:
        return (
            f"it was measured on {agreement.texts} built-in sentences, because there were too few memories",
            f"Run `memory-mcp models export-onnx` again when there are {MIN_TEXTS} memories, {alternative}",
        )
    if agreement.telling < MIN_CONCLUSIVE_QUERIES:
        return (
            f"fp32 itself scores the memories clearly differently for only {agreement.telling} of {agreement.queries} queries, which proves nothing",
            f"Run `memory-mcp models export-onnx` again when there are other memories, {alternative}",
        )
    return None


def _remedy() -> str:
    return "Run `memory-mcp models export-onnx`, or set inference_backend to torch"
