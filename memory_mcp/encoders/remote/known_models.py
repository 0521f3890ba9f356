"""Which models a server has run under one name: a name and a revision may stay the same while the weights change.

What each gave for the probe text is kept in a file of the data directory. Without that file, a server's word is taken.
"""

import base64
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np

from memory_mcp.encoders.models import Vectors
from memory_mcp.encoders.remote.models import SAME_COSINE

FILE_NAME = "served.json"
MAX_MODELS = 20

logger = logging.getLogger(__name__)


def fingerprint(identity: str, probe: Vectors, directory: Path | None) -> str:
    """Eight hex digits from the server's description of the model; for other weights under the same name, more.

    `probe` is the model's vector of the probe text, of length 1.
    """
    by_name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:8]
    known = _read(directory / FILE_NAME) if directory else []
    seen = [(entry["fingerprint"], _vector(entry["probe"])) for entry in known if entry["fingerprint"].startswith(by_name)]
    for name, vector in seen:
        if vector.shape == probe.shape and float(vector @ probe) >= SAME_COSINE:
            return name
    new = f"{by_name}-{hashlib.sha256(probe.tobytes()).hexdigest()[:8]}" if seen else by_name
    if directory:
        _write(directory / FILE_NAME, [{"fingerprint": new, "probe": base64.b64encode(probe.tobytes()).decode()}, *known][:MAX_MODELS])
    return new


def _vector(text: str) -> Vectors:
    return np.frombuffer(base64.b64decode(text), np.float32)


def _read(file: Path) -> list[dict[str, str]]:
    try:
        entries: Any = json.loads(file.read_text(encoding="utf-8"))
        for entry in entries:
            _vector(entry["probe"])
            entry["fingerprint"].startswith("")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return list(entries)


def _write(file: Path, entries: list[dict[str, str]]) -> None:
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(entries), encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        logger.warning(
            "%s can't be written (%s): other weights under the same name will not be noticed at the next start", file, error.strerror
        )
