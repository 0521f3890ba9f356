"""A directory with an exported model: what lies in it, where it is for a model's name, and whether it is whole.

Nothing here imports torch or onnxruntime. The directory is written by `onnx_export` and read by `onnx_models`.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from memory_mcp.config.settings import Settings
from memory_mcp.encoders import presence
from memory_mcp.encoders.model_names import own_name
from memory_mcp.encoders.presence import Found, Missing, Role
from memory_mcp.errors import EncoderFailed

# Beside the personas, and none of them: a persona's directory never begins with a dot.
DIRECTORY_NAME = ".models"
MANIFEST_NAME = "export.json"
TOKENIZER_NAME = "tokenizer.json"
FORMAT = 1

# Of the best by int8, so many must be among the best by fp32. A sound model has .88 and more; one that lost its way, less than that.
AGREEMENT_FLOOR = 0.8

Precision = Literal["fp32", "int8"]
FILE_NAMES: dict[Precision, str] = {"fp32": "model.onnx", "int8": "model_int8.onnx"}
# Beside each, its table of tokens: most of a small model, and read from the disk where it is needed, not held in memory.
TABLE_NAMES: dict[Precision, str] = {precision: f"{name}.data" for precision, name in FILE_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike int8 ranks to fp32. `overlap` is the mean share of its `top` best that are so by fp32 too, `spearman` the mean rank correlation.

    `own` tells whether it was measured on memories, and not on built-in sentences.
    """

    texts: int
    queries: int
    top: int
    overlap: float
    spearman: float
    own: bool

    @property
    def is_enough(self) -> bool:
        """Whether int8 may be used."""
        return self.overlap >= AGREEMENT_FLOOR


@dataclass(frozen=True, slots=True)
class Padding:
    """How shorter texts of a batch are filled up."""

    id: int
    token: str
    type_id: int
    side: Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Export:
    """What export.json says. `fingerprint` is the source's, `difference` the greatest to what torch answers, sha256 by file name."""

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
    format: int = FORMAT


def directory_for(name: str, role: Role, exports: Path) -> Path:
    """Where the export of a model is put. Its last part tells models of one name from different places apart."""
    readable = re.sub(r"[^a-z0-9.-]+", "-", own_name(name)).strip("-.") or role
    return exports / f"{role}-{readable[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def find_configured(settings: Settings, name: str, role: Role, exports: Path | None) -> Found | Missing:
    """Where what runs a model would take it from: its own files, or its export."""
    return find(name, role, exports) if settings.inference_backend == "onnx" else presence.find(name, role)


def find(name: str, role: Role, exports: Path | None) -> Found | Missing:
    """The directory with a model's export: the one that is named, if it is one, else the one among `exports`."""
    named = Path(name).expanduser()
    if (named / MANIFEST_NAME).is_file():
        return Found(named)
    place = directory_for(name, role, exports) if exports else None
    if place and (place / MANIFEST_NAME).is_file():
        if named.is_dir() and not presence.fault_of(named) and presence.fingerprint(named) != read(place).fingerprint:
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
        agreement = told["agreement"] and Agreement(**told["agreement"])
        return Export(**{**told, "padding": Padding(**told["padding"]), "inputs": tuple(told["inputs"]), "agreement": agreement})
    except (OSError, ValueError, KeyError, TypeError) as error:
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
    """Passes when int8 has shown that it ranks as fp32 does.

    Raises:
        EncoderFailed: it was not measured, or agrees too little.
    """
    if export.agreement is None:
        raise EncoderFailed(f"{export.model} can't be used in int8", "how well it ranks so has not been measured", _remedy())
    if not export.agreement.is_enough:
        raise EncoderFailed(
            f"{export.model} can't be used in int8",
            f"of its {export.agreement.top} best only {export.agreement.overlap:.0%} are so by fp32, and {AGREEMENT_FLOOR:.0%} are wanted",
            "Set onnx_precision to fp32",
        )


def _remedy() -> str:
    return "Run `memory-mcp models export-onnx`, or set inference_backend to torch"
