"""`inference_backend: "auto"`: which runtime and precision a model gets on this machine, and why.

The embedder stays in fp32 unless int8 is asked for: its vectors are those of torch, so nothing is embedded again, and a data directory can move
between machines with and without instructions for 8 bits. A cross-encoder stores nothing, and gains the most.
"""

import logging
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Found, Role
from memory_mcp.encoders.onnx import export_directory
from memory_mcp.encoders.onnx.background import BackgroundExport
from memory_mcp.encoders.onnx.export_directory import Export, Precision
from memory_mcp.encoders.torch.devices import automatic_is_gpu
from memory_mcp.errors import EncoderFailed
from memory_mcp.extras import is_installed

_EIGHT_BIT_FLAGS = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """`settings` name the runtime and the precision. `improvable` returns whether another choice may be better by now; None: never."""

    settings: Settings
    reason: str
    improvable: Callable[[], bool] | None = None

    @property
    def backend(self) -> str:
        """The choice and its reason, for people."""
        onnx = self.settings.inference_backend == "onnx"
        return f"{f'onnx, {self.settings.onnx_precision}' if onnx else 'torch'}: {self.reason}"


def choose(settings: Settings, name: str, role: Role, exports: Path | None, background: BackgroundExport | None) -> Choice:
    """The runtime and precision of a model. Exports it first if it has not been exported yet, which takes half a minute."""
    if settings.embeddings_device == "cuda" or (settings.embeddings_device == "auto" and automatic_is_gpu()):
        return _torch(settings, f"embeddings_device is {settings.embeddings_device}")
    settings = settings.model_copy(update={"embeddings_device": "cpu"})
    if not is_installed("onnx"):
        return _torch(settings, "the extra onnx is not installed")
    try:
        directory = _export_of(name, role, exports, background)
        return _precision(settings, name, role, directory, background)
    except EncoderFailed as error:
        if background and background.closed:
            raise
        if background:
            logger.warning("%s %s runs on torch: %s", role, name, error)
        return _torch(settings, (error.why or error.what).rstrip("."))


def without_export(choice: Choice, name: str, role: Role, exports: Path, error: EncoderFailed) -> Choice:
    """torch in place of an export that can't be loaded. The next start exports again."""
    logger.warning("%s %s runs on torch: %s", role, name, error)
    shutil.rmtree(export_directory.directory_for(name, role, exports), ignore_errors=True)
    return _torch(choice.settings, (error.why or error.what).rstrip("."))


def _torch(settings: Settings, reason: str) -> Choice:
    return Choice(settings.model_copy(update={"inference_backend": "torch"}), reason)


def _export_of(name: str, role: Role, exports: Path | None, background: BackgroundExport | None) -> Path:
    """The directory of the model's export, made if it is missing or of other weights."""
    location = export_directory.find(name, role, exports)
    source = availability.find(name, role)
    there = source.directory if isinstance(source, Found) else None
    if isinstance(location, Found) and location.directory:
        if there is None or there == location.directory:
            return location.directory
        if export_directory.read(location.directory).fingerprint == availability.fingerprint(there):
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


def _precision(settings: Settings, name: str, role: Role, directory: Path, background: BackgroundExport | None) -> Choice:
    if settings.onnx_precision == "fp32":
        return _onnx(settings, "fp32", "onnx_precision is fp32")
    if settings.onnx_precision == "auto" and role == "embedder":
        return _onnx(settings, "fp32", "its vectors are those of torch")
    if settings.onnx_precision == "auto" and not has_eight_bit_instructions():
        return _onnx(settings, "fp32", "this processor has no instructions for 8 bits (VNNI, AMX)")
    export = export_directory.read(directory)
    if background and not _is_measured(export) and _enough(background):
        try:
            background.measure(name, directory, background.texts())
        except EncoderFailed as error:
            return _onnx(settings, "fp32", f"int8 could not be measured: {error.why}")
        export = export_directory.read(directory)
    return _by_agreement(settings, role, export, background)


def _by_agreement(settings: Settings, role: Role, export: Export, background: BackgroundExport | None) -> Choice:
    """int8 where it was shown to rank as fp32 does."""
    agreement = export.agreement
    measured = f"{agreement.alike:.0%} {export_directory.AGREEMENT_MEASURE[role]}, on {agreement.texts} memories" if agreement else ""
    if export_directory.ranks_differently(export):
        return _onnx(settings, "fp32", f"int8 ranks differently: {measured}")
    missing = export_directory.unproven(export)
    if missing is None or export.int8_accepted:
        return _onnx(settings, "int8", f"accepted unproven: {missing[0]}" if missing else measured)
    if background is None or _is_measured(export):
        return _onnx(settings, "fp32", f"int8 is unproven: {missing[0]}")
    waiting = f"int8 must rank {export_directory.MIN_TEXTS} of your memories as fp32 does first"
    return _onnx(settings, "fp32", waiting, lambda: _enough(background))


def _onnx(settings: Settings, precision: Precision, reason: str, improvable: Callable[[], bool] | None = None) -> Choice:
    return Choice(settings.model_copy(update={"inference_backend": "onnx", "onnx_precision": precision}), reason, improvable)


def _is_measured(export: Export) -> bool:
    return export.agreement is not None and export.agreement.own


def _enough(background: BackgroundExport) -> bool:
    return len(background.texts()) >= export_directory.MIN_TEXTS


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
