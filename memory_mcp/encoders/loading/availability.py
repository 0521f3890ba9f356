"""Whether a model is there, found out without torch: importing it costs 487 MB and 7 s, for nothing where there is no model."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HUB_TIMEOUT_SECONDS = 4.0

Role = Literal["embedder", "reranker"]

# What a name without an organisation means, as in sentence-transformers.
_ORGANISATIONS: dict[Role, str] = {"embedder": "sentence-transformers", "reranker": "cross-encoder"}
_SETTINGS: dict[Role, str] = {"embedder": "embeddings_model", "reranker": "reranker_model"}
_CONFIGS = ("modules.json", "config.json")
_WEIGHTS = ("*.safetensors", "*/*.safetensors", "pytorch_model*.bin", "*/pytorch_model*.bin")
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_SAMPLE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Found:
    """Where a model was found: a directory, or the hub, from which it has still to be downloaded."""

    directory: Path | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A sentence that says what was looked at and what to do."""

    why: str


def find(name: str, role: Role, hub: str | None = None) -> Found | Missing:
    """Looks for a directory, then into the local cache, then asks the hub (at `hub`, else at the usual address).

    Takes milliseconds for what is on this machine, and a few seconds at most where a hub does not answer.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        fault = fault_of(path)
        return Missing(f"{name} is a directory, but {fault}. Put a whole model there, or {_otherwise(role)}.") if fault else Found(path)
    if not _HUB_NAME.fullmatch(name):
        return Missing(f"there is no directory {name}. Correct the path, or {_otherwise(role)}.")
    cached = cached_directory(name, role)
    if cached and not fault_of(cached):
        return Found(cached)
    silent = _why_not_at_hub(hub_name(name, role), hub)
    if silent is None:
        return Found(None)
    copy = f"the copy in the local cache is not whole ({fault_of(cached)})" if cached else "there is no copy in the local cache"
    return Missing(
        f"{name} is not here: there is no such directory, {copy}, and {silent}. "
        f"Run `memory-mcp models download` where there is a network, or {_otherwise(role)}."
    )


def why_absent(name: str, role: Role, hub: str | None = None) -> str | None:
    """None when the model is there, or can be downloaded; else the sentence."""
    found = find(name, role, hub)
    return found.why if isinstance(found, Missing) else None


def cached_directory(name: str, role: Role) -> Path | None:
    """The model's snapshot in the Hugging Face cache, whole or not."""
    # 0.3 s, and a server without models, or with models in directories, does without it.
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

    for config in _CONFIGS:
        file = try_to_load_from_cache(hub_name(name, role), config)
        if isinstance(file, str):
            return Path(file).parent
    return None


def hub_name(name: str, role: Role) -> str:
    """The full name at the hub: `all-MiniLM-L6-v2` means `sentence-transformers/all-MiniLM-L6-v2`."""
    return name if "/" in name else f"{_ORGANISATIONS[role]}/{name}"


def fault_of(directory: Path) -> str | None:
    """What a model directory lacks, as a clause; None when it looks whole."""
    if not any((directory / config).is_file() for config in _CONFIGS):
        return "it has no config.json"
    weights = weight_files(directory)
    if not weights:
        return "it has no weights (*.safetensors)"
    empty = [file for file in weights if not file.stat().st_size]
    return f"its file {empty[0].name} is empty" if empty else None


def weight_files(directory: Path) -> list[Path]:
    """The files with weights, by name. A link that leads nowhere, as in a cache that was tidied by hand, does not count."""
    return sorted(file for pattern in _WEIGHTS for file in directory.glob(pattern) if file.is_file())


def fingerprint(directory: Path) -> str:
    """Eight hex digits that tell two models under one name apart: their configs, and samples of their weights.

    Not the whole file: that would take a second at every start, and training changes every part of the weights.
    """
    seen = hashlib.sha256()
    for config in sorted(file for pattern in ("*.json", "*/config.json") for file in directory.glob(pattern) if _shapes_vectors(file)):
        seen.update(config.read_bytes())
    for weights in weight_files(directory):
        size = weights.stat().st_size
        with weights.open("rb") as file:
            for start in (0, size // 3, size * 2 // 3, max(0, size - _SAMPLE_BYTES)):
                file.seek(start)
                seen.update(file.read(_SAMPLE_BYTES))
        seen.update(str(size).encode())
    return seen.hexdigest()[:8]


def _shapes_vectors(file: Path) -> bool:
    """Not the file that holds prompts, which have a version of their own, and versions of libraries, which mean nothing."""
    return file.is_file() and file.name in {"config.json", "modules.json", "sentence_bert_config.json"}


def _why_not_at_hub(name: str, endpoint: str | None) -> str | None:
    """Why the hub can't give this model, as a clause; None when it can."""
    # As in `cached_directory`.
    from huggingface_hub import HfApi, constants  # noqa: PLC0415
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError  # noqa: PLC0415

    if constants.is_offline_mode():
        return "the hub is not asked (HF_HUB_OFFLINE is set)"
    try:
        HfApi(endpoint=endpoint).model_info(name, timeout=HUB_TIMEOUT_SECONDS)
    except GatedRepoError:
        return f"the hub gives {name} only to those who accepted its terms (set HF_TOKEN)"
    except (RepositoryNotFoundError, HFValidationError):
        return f"the hub knows no {name}"
    except HfHubHTTPError as error:
        return f"the hub answered {error.response.status_code}"
    except Exception as error:  # noqa: BLE001  a network fails in many classes (httpx, ssl, OSError), and all mean the same here
        return f"the hub can't be reached ({type(error).__name__})"
    return None


def _otherwise(role: Role) -> str:
    return f"set {_SETTINGS[role]} to a model's directory, or to null for none"
