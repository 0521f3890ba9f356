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

# In the data directory, next to the personas: a persona's directory never begins with a dot.
DIRECTORY_NAME = ".models"
MANIFEST_NAME = "export.json"
TOKENIZER_NAME = "tokenizer.json"
FORMAT = 1

# The least share of pairs that int8 must order as fp32 does. Sound weights have .88 and more for an embedder, .99 for a reranker; noise has .1 and .5.
MIN_ALIKE: dict[Role, float] = {"embedder": 0.8, "reranker": 0.95}

Precision = Literal["fp32", "int8"]
FILE_NAMES: dict[Precision, str] = {"fp32": "model.onnx", "int8": "model_int8.onnx"}
# The token table of each: most of a small model, and read from the disk as needed instead of being held in memory.
TABLE_NAMES: dict[Precision, str] = {precision: f"{name}.data" for precision, name in FILE_NAMES.items()}


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

    `fingerprint` is that of the source model, `difference` the largest difference from torch's results, `sha256` is by file name. `spread`: that of a
    reranker's scores (`encoders.spread`), which exports of earlier versions lack. `int8_alike`: of the built-in passages that fp32 scores clearly
    differently, the share of pairs that int8 orders as fp32 does; None if fp32 tells too few apart. `int8_compared`: False for an export of an earlier
    version that lacks this and has no proof of its own.
    """

    role: Role
    model: str
    fingerprint: str
    dimension: int | None
    max_tokens: int
    query_prefix: str
    document_prefix: str
    prefix_version: str
    inputs: tuple[str, ...]
    padding: Padding
    truncation_side: Literal["left", "right"]
    difference: float
    sha256: dict[str, str]
    spread: float | None = None
    int8_alike: float | None = None
    int8_compared: bool = True
    format: int = FORMAT

    @property
    def int8_order(self) -> str:
        """How int8 ranks, for people."""
        if not self.int8_compared:
            return "int8 is unproven: an earlier version made this export and did not compare it"
        if self.int8_alike is None:
            return "int8 is unproven: fp32 itself tells too few passages apart"
        return f"{self.int8_alike:.0%} of the pairs with clearly different fp32 scores are in the same order in int8"


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
        if "int8_alike" not in content:
            content["int8_alike"] = _earlier_proof(content)
            content["int8_compared"] = content["int8_alike"] is not None
        known = {field.name: content[field.name] for field in fields(Export) if field.name in content}
        return Export(**{**known, "padding": Padding(**content["padding"]), "inputs": tuple(content["inputs"])})
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


def _earlier_proof(content: dict[str, Any]) -> float | None:
    """What an earlier version found of int8, on memories of its user; or that its user accepts it unproven."""
    measured = content.get("agreement") or {}
    if measured.get("own") and measured.get("telling", 0) >= 10:
        return float(measured["alike"])
    return 1.0 if content.get("int8_accepted") else None


def _remedy() -> str:
    return "Run `memory-mcp models export-onnx`, or set inference_backend to torch"
