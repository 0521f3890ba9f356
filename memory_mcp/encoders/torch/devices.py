"""Which device torch runs a model on. `cuda` is also what torch calls AMD's cards.

torch is imported inside functions, because it takes seconds and half a gigabyte: a machine that can't have a GPU must not pay that to find out.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from memory_mcp.errors import EncoderFailed

GPU = "cuda"
# A GPU takes as long for one text as for this many: a call is a few hundred programs to start, whatever they work on. By characters, a batch
# is bounded by what it takes of memory: 160 MB a layer of the largest usual model.
GPU_BATCH = 64
GPU_BATCH_CHARACTERS = 16_000

Item = TypeVar("Item")
Result = TypeVar("Result")

_AMD = Path("/dev/kfd")
_NVIDIA = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"  # the driver's own library, which no build of torch brings


def usable_device(wanted: str, name: str) -> str:
    """`cpu` or `cuda`: resolves `auto`. A missing device is an error and never replaced by another.

    Raises:
        EncoderFailed: the device is `cuda` and the machine has none.
    """
    if wanted == "cuda" and not _has_gpu():
        raise EncoderFailed(
            "{} can't be loaded",
            "embeddings_device is cuda, and torch finds no GPU here",
            "Set it to cpu or auto, or install a CUDA build of torch",
            name,
        )
    return ("cuda" if automatic_is_gpu() else "cpu") if wanted == "auto" else wanted


def automatic_is_gpu() -> bool:
    """Whether `auto` means a GPU here. Imports torch only where a driver is installed."""
    return has_driver() and _has_gpu()


def has_driver() -> bool:
    """Whether a GPU's driver is installed. Imports no torch."""
    if _AMD.exists():
        return True
    try:
        ctypes.CDLL(_NVIDIA)
    except OSError:
        return False
    return True


def runs_on(wanted: str, used: str) -> str | None:
    """What is shown of a model on this device, with the driver's name of a GPU; None if the device is the configured one."""
    import torch  # noqa: PLC0415  see the top

    if used == "cuda":
        return f"torch on cuda ({torch.cuda.get_device_name()})"
    return None if wanted == used else f"torch on {used}"


def in_halves(work: Callable[[list[Item]], Sequence[Result]], items: list[Item]) -> Sequence[Result]:
    """Does `work` for all items at once; if the GPU's memory is too small for that, for each half of them, and so on.

    Raises:
        torch.OutOfMemoryError: it is too small for one item.
    """
    import torch  # noqa: PLC0415  see the top

    try:
        return work(items)
    except torch.OutOfMemoryError:
        if len(items) == 1:
            raise
    # Here, because the error above keeps what the failed call has made.
    torch.cuda.empty_cache()
    middle = len(items) // 2
    return [*in_halves(work, items[:middle]), *in_halves(work, items[middle:])]


def return_freed() -> None:
    """Returns the memory of the GPU that is in no use to the driver, for other programs. Imports no torch."""
    if "torch" in sys.modules:
        import torch  # noqa: PLC0415  see the top

        torch.cuda.empty_cache()  # nothing without a GPU


def _has_gpu() -> bool:
    import torch  # noqa: PLC0415  see the top

    return bool(torch.cuda.is_available())
