"""A directory with an exported model: what lies in it, where it is for a model's name, and whether it is whole.

Nothing here imports torch or onnxruntime. The directory is written by `onnx_export` and read by `onnx_models`.
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
from memory_mcp.encoders.model_names import own_name
from memory_mcp.errors import EncoderFailed

# Beside the personas, and none of them: a persona's directory never begins with a dot.
DIRECTORY_NAME = ".models"
MANIFEST_NAME = "export.json"
TOKENIZER_NAME = "tokenizer.json"
FORMAT = 1

# How alike int8 must rank. Sound weights have .88 and more for an embedder, .99 for a reranker; noise has .1 and .5.
FLOORS: dict[Role, float] = {"embedder": 0.8, "reranker": 0.95}
ALIKE_OF: dict[Role, str] = {
    "embedder": "of its 10 best are so by fp32",
    "reranker": "of the pairs of texts that fp32 tells apart are in the same order",
}
FEWEST_TELLING = 10
# With fewer the ten best are too large a part of all to tell anything.
FEWEST_TEXTS = 50

Precision = Literal["fp32", "int8"]
FILE_NAMES: dict[Precision, str] = {"fp32": "model.onnx", "int8": "model_int8.onnx"}
# Beside each, its table of tokens: most of a small model, and read from the disk where it is needed, not held in memory.
TABLE_NAMES: dict[Precision, str] = {precision: f"{name}.data" for precision, name in FILE_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike int8 ranks to fp32, over those of the `queries` for which fp32 tells the texts apart: `telling`.

    `alike` is the mean share that `ALIKE_OF` names, `spearman` the mean rank correlation; both are 0 where no query tells anything.
    `own` tells whether it was measured on memories, and not on built-in sentences.
    """

    texts: int
    queries: int
    spearman: float
    own: bool
    alike: float
    telling: int


@dataclass(frozen=True, slots=True)
class Padding:
    """How shorter texts of a batch are filled up."""

    id: int
    token: str
    type_id: int
    side: Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Export:
    """What export.json says. `fingerprint` is the source's, `difference` the greatest to what torch answers, sha256 by file name.

    `int8_accepted`: somebody said that int8 may be used before it is proven.
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
    format: int = FORMAT


def directory_for(name: str, role: Role, exports: Path) -> Path:
    """Where the export of a model is put. Its last part tells models of one name from different places apart."""
    readable = re.sub(r"[^a-z0-9.-]+", "-", own_name(name)).strip("-.") or role
    return exports / f"{role}-{readable[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def find_configured(settings: Settings, name: str, role: Role, exports: Path | None) -> Found | Missing:
    """Where what runs a model would take it from: its own files, or its export."""
    return find(name, role, exports) if settings.inference_backend == "onnx" else availability.find(name, role)


def find(name: str, role: Role, exports: Path | None) -> Found | Missing:
    """The directory with a model's export: the one that is named, if it is one, else the one among `exports`."""
    named = Path(name).expanduser()
    if (named / MANIFEST_NAME).is_file():
        return Found(named)
    place = directory_for(name, role, exports) if exports else None
    if place and (place / MANIFEST_NAME).is_file():
        if named.is_dir() and not availability.fault_of(named) and availability.fingerprint(named) != read(place).fingerprint:
            return Missing(f"{name} has changed since it was exported. {_remedy()}.")
        return Found(place)
    return Missing(f"{name} has not been exported to ONNX: there is no {place or MANIFEST_NAME}. {_remedy()}.")


def read(directory: Path) -> Export:
    """What export.json says.

    Raises:
        EncoderFailed: it can't be read, or another version wrote it.
    """
    try:
        told: dict[str, Any] = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise EncoderFailed(f"{directory} was exported by another version", f"its format is {told['format']}", _remedy())
        # What an earlier version measured otherwise proves nothing now.
        measured = told["agreement"] or {}
        agreement = Agreement(**measured) if measured.keys() == {field.name for field in fields(Agreement)} else None
        return Export(**{**told, "padding": Padding(**told["padding"]), "inputs": tuple(told["inputs"]), "agreement": agreement})
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EncoderFailed(f"{directory / MANIFEST_NAME} can't be read", f"{type(error).__name__}", _remedy()) from error


def write(export: Export, directory: Path) -> None:
    """Writes export.json: last, so that a directory that has it is whole."""
    told = json.dumps(asdict(export), ensure_ascii=False, indent=2)
    (directory / MANIFEST_NAME).write_text(told + "\n", encoding="utf-8")


def checked(directory: Path, export: Export, precision: Precision) -> Path:
    """The file with the model of this precision, after its bytes, its table's and the tokenizer's were found to be those that were written.

    Raises:
        EncoderFailed: a file is missing or damaged.
    """
    for name in (TOKENIZER_NAME, *weights(export, precision)):
        file = directory / name
        if not file.is_file():
            raise EncoderFailed(f"{export.model} can't be loaded", f"{file} is missing", _remedy())
        if sha256(file) != export.sha256.get(name):
            raise EncoderFailed(f"{export.model} can't be loaded", f"{file} is damaged: its checksum is another one", _remedy())
    return directory / FILE_NAMES[precision]


def sha256(file: Path) -> str:
    """The checksum of a file, in hex."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def weights(export: Export, precision: Precision) -> list[str]:
    """The names of the files that hold a model of this precision. An export of an earlier version has its table in the model's file."""
    return [name for name in (FILE_NAMES[precision], TABLE_NAMES[precision]) if name in export.sha256]


def check_agreement(export: Export) -> None:
    """Passes when int8 has shown that it ranks as fp32 does, or when nothing speaks against it and somebody accepts it so.

    Raises:
        EncoderFailed: it agrees too little, or that it agrees is not proven.
    """
    refusal = f"{export.model} can't be used in int8"
    if differs(export):
        alike = export.agreement.alike if export.agreement else 0.0
        raise EncoderFailed(
            refusal, f"only {alike:.0%} {ALIKE_OF[export.role]}, and {FLOORS[export.role]:.0%} are wanted", "Set onnx_precision to fp32"
        )
    missing = unproven(export)
    if missing and not export.int8_accepted:
        raise EncoderFailed(refusal, *missing)


def differs(export: Export) -> bool:
    """Whether int8 was measured, and ranks too differently."""
    found = export.agreement
    return found is not None and found.telling >= FEWEST_TELLING and found.alike < FLOORS[export.role]


def unproven(export: Export) -> tuple[str, str] | None:
    """Why the measurement is no proof, and what to do; None where it is one."""
    found = export.agreement
    otherwise = "set onnx_precision to fp32, or accept it unproven with --accept-int8"
    if found is None:
        return "how well it ranks so has not been measured", f"Run `memory-mcp models export-onnx`, {otherwise}"
    if not found.own:
        return (
            f"it was measured on {found.texts} built-in sentences, because there were too few memories",
            f"Run `memory-mcp models export-onnx` again when there are {FEWEST_TEXTS} memories, {otherwise}",
        )
    if found.telling < FEWEST_TELLING:
        return (
            f"fp32 itself tells the memories apart for only {found.telling} of {found.queries} queries, so that nothing was shown",
            f"Run `memory-mcp models export-onnx` again when there are other memories, {otherwise}",
        )
    return None


def _remedy() -> str:
    return "Run `memory-mcp models export-onnx`, or set inference_backend to torch"
