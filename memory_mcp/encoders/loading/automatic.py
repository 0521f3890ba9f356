"""Which runtime and precision a model gets on this machine, and why.

The embedder stays in fp32 unless int8 is asked for: its vectors are those of torch, so nothing is embedded again, and a data directory can move
between machines with and without instructions for 8 bits. A cross-encoder stores nothing, and gains the most.
"""

import logging
import platform
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Found, Missing, Role
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.background import BackgroundExport
from memory_mcp.encoders.onnx.export_directory import Precision
from memory_mcp.encoders.torch.devices import automatic_is_gpu
from memory_mcp.errors import EncoderFailed
from memory_mcp.extras import is_installed

_EIGHT_BIT_FLAGS = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """The directory of the export that onnxruntime loads, in this precision; without one, torch loads the model on `device`."""

    reason: str
    device: str = "cpu"
    directory: Path | None = None
    precision: Precision = "fp32"

    @property
    def backend(self) -> str:
        """The choice and its reason, for people."""
        return f"{f'onnx, {self.precision}' if self.directory else 'torch'}: {self.reason}"


def choose(settings: Settings, name: str, role: Role, exports: Path | None, background: BackgroundExport | None) -> Choice:
    """The runtime and precision of a model. Exports it first if it has not been exported yet, which takes half a minute.

    Raises:
        EncoderFailed: only an export may be used, and there is none, or it can't be used as the settings say.
    """
    device = settings.embeddings_device
    if settings.inference_backend == "torch":
        return Choice("inference_backend is torch", device)
    if settings.inference_backend == "onnx":
        return _precision(settings, role, _exported_by_hand(settings, name, role, exports))
    if device == "cuda" or (device == "auto" and automatic_is_gpu()):
        return Choice(f"embeddings_device is {device}", device)
    if not is_installed("onnx"):
        return Choice("the extra onnx is not installed")
    try:
        return _precision(settings, role, _export_of(name, role, exports, background, may_be_int8=_may_be_int8(settings, role)))
    except EncoderFailed as error:
        if background and background.closed:
            raise
        if background:
            logger.warning("%s %s runs on torch: %s", role, name, error)
        return Choice((error.why or error.what).rstrip("."))


def without_export(name: str, role: Role, exports: Path, error: EncoderFailed) -> Choice:
    """torch in place of an export that can't be loaded. The next start exports again."""
    logger.warning("%s %s runs on torch: %s", role, name, error)
    shutil.rmtree(export_directory.directory_for(name, role, exports), ignore_errors=True)
    return Choice((error.why or error.what).rstrip("."))


def refuse_gpu(settings: Settings, name: str, reason: str) -> None:
    """Refuses a model that runs on the CPU where the settings want a GPU; `reason` is a clause.

    Raises:
        EncoderFailed: they do.
    """
    if settings.embeddings_device == "cuda":
        raise EncoderFailed("{} can't be loaded", "embeddings_device is cuda, and {}", "Change one of them", name, reason)


def _exported_by_hand(settings: Settings, name: str, role: Role, exports: Path | None) -> Path:
    refuse_gpu(settings, name, "inference_backend onnx runs on the CPU")
    location = export_directory.find(name, role, exports)
    if isinstance(location, Missing) or location.directory is None:
        raise EncoderFailed("{}", "", "", location.reason.rstrip(".") if isinstance(location, Missing) else name)
    return location.directory


def _export_of(name: str, role: Role, exports: Path | None, background: BackgroundExport | None, *, may_be_int8: bool) -> Path:
    """The directory of the model's export, made if it is missing or of other weights, and again if nothing is known of an int8 that may be used."""
    location = export_directory.find(name, role, exports)
    source = availability.find(name, role)
    there = source.directory if isinstance(source, Found) else None
    if isinstance(location, Found) and location.directory:
        if there is None or there == location.directory:
            return location.directory
        export = export_directory.read(location.directory)
        if export.fingerprint == availability.fingerprint(there):
            if may_be_int8 and not export.int8_compared and exports and background and is_installed("export-onnx"):
                _export_again(name, role, there, exports, background)
            return location.directory
    if exports is None or background is None:
        raise EncoderFailed("{} has not been exported", "it has not been exported to ONNX", "", name)
    if not isinstance(source, Found):
        raise EncoderFailed("{}", "", "", source.reason.rstrip("."))
    if not is_installed("export-onnx"):
        raise EncoderFailed("{} can't be exported", "the extra export-onnx is not installed", "", name)
    target = export_directory.directory_for(name, role, exports)
    background.export(name, role, there or availability.download(name, role, show_progress=False), target)
    return target


def _export_again(name: str, role: Role, source: Path, exports: Path, background: BackgroundExport) -> None:
    """Exports a model whose export can be used in fp32. Where that fails, it is."""
    try:
        background.export(name, role, source, export_directory.directory_for(name, role, exports))
    except EncoderFailed as error:
        if background.closed:
            raise
        logger.warning("%s %s stays in fp32: %s", role, name, error)


def _may_be_int8(settings: Settings, role: Role) -> bool:
    """Whether int8 is used if it orders texts as fp32 does."""
    automatic = settings.onnx_precision == "auto" and role == "reranker" and has_eight_bit_instructions()
    return automatic or settings.onnx_precision == "int8"


def _precision(settings: Settings, role: Role, directory: Path) -> Choice:
    """int8 where it is asked for, or where it makes a cross-encoder faster, if it orders texts as fp32 does."""
    wanted, export = settings.onnx_precision, export_directory.read(directory)
    if wanted == "fp32":
        return Choice("onnx_precision is fp32", directory=directory)
    if export.int8_alike is not None and export.int8_alike < export_directory.MIN_ALIKE[role]:
        return Choice(f"int8 ranks differently: {export.int8_order}", directory=directory)
    if wanted == "int8":
        return Choice("onnx_precision is int8", directory=directory, precision="int8")
    if role == "embedder":
        return Choice("its vectors are those of torch", directory=directory)
    if not has_eight_bit_instructions():
        return Choice("this processor has no instructions for 8 bits (VNNI, AMX)", directory=directory)
    return Choice(export.int8_order, directory=directory, precision="fp32" if export.int8_alike is None else "int8")


@cache
def has_eight_bit_instructions() -> bool:
    """Whether int8 is faster than fp32 here: VNNI or AMX, or the dot products of ARM. False where the system doesn't tell."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flags = {
        flag for line in text.splitlines() if line.lower().startswith(("flags", "features")) for flag in line.partition(":")[2].split()
    }
    return bool(flags & _EIGHT_BIT_FLAGS)
