"""Where a model is: a directory, a package, the local cache or the Hugging Face hub; and downloading it.

All without torch: importing it costs 487 MB and 7 s, for nothing on a machine without models.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory_mcp.config.proxies import used_for
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.failures import first_line
from memory_mcp.encoders.packaged import package
from memory_mcp.errors import EncoderFailed, NotInstalled, ProxyUnusable, without_passwords
from memory_mcp.extras import is_installed, require
from memory_mcp.wording import sentence

HUB_TIMEOUT_SECONDS = 4.0

Role = Literal["embedder", "reranker"]

# The organization of a name without one, as in sentence-transformers.
_NOT_FOUND = (
    "{} was not found: there is no such directory, {}, and {}. Run `memory-mcp models download` with a network connection, "
    "or set {} to a model's directory, or to null for none.{}"
)
_ORGANIZATIONS: dict[Role, str] = {"embedder": "sentence-transformers", "reranker": "cross-encoder"}
_SETTINGS: dict[Role, str] = {"embedder": "embeddings_model", "reranker": "reranker_model"}
_CONFIGS = ("modules.json", "config.json")
_WEIGHTS = ("*.safetensors", "*/*.safetensors", "pytorch_model*.bin", "*/pytorch_model*.bin")
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_SAMPLE_BYTES = 65_536
# The same weights in the formats of other libraries.
_OTHER_FORMATS = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "coreml/*", "*.mlmodel"]


@dataclass(frozen=True, slots=True)
class Found:
    """A model's directory; None if the hub has the model and it must be downloaded."""

    directory: Path | None


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a model is missing: a sentence that names the places searched and the remedy."""

    reason: str


def find(name: str, role: Role, hub: str | None = None) -> Found | Missing:
    """Looks for a directory, then in the local cache, then on the hub (at the address `hub`, or else the default one). The embedder
    that comes in a package is looked for there alone.

    Takes milliseconds for a model on this machine, and a few seconds at most if a hub does not answer.
    """
    path = Path(name).expanduser()
    if role == "embedder" and package.is_named(name):
        return _packaged()
    if not is_installed("models"):
        return not_installed(name, role, "models")
    if path.is_dir():
        fault = fault_of(path)
        return (
            Missing(f"{name} is a directory, but {fault}. Put a complete model there, or {_alternative(role)}.") if fault else Found(path)
        )
    if not _HUB_NAME.fullmatch(name):
        return Missing(f"there is no directory {name}. Correct the path, or {_alternative(role)}.")
    return _in_cache_or_on_hub(name, role, hub)


def configured(settings: Settings, role: Role) -> str | None:
    """The name of the configured model; None if there is to be none."""
    return settings.embeddings_model if role == "embedder" else settings.reranker_model


def elsewhere(settings: Settings, role: Role) -> str | None:
    """Where a model runs that is not loaded from files here, as a phrase; None if it is loaded here."""
    url = settings.embeddings_url if role == "embedder" else settings.reranker_url
    if url:
        return sentence("at {}", without_passwords(url))
    return sentence("by the class {}", settings.embeddings_class) if role == "embedder" and settings.embeddings_class else None


def not_installed(name: str, role: Role, extra: str) -> Missing:
    """Why no model of a backend can be loaded on this machine."""
    reason = NotInstalled(sentence("{} can't be loaded", name), extra)
    suggestion = package.suggestion() if role == "embedder" else ""
    return Missing(sentence("{} Or set {} to null for none.{}", reason, _SETTINGS[role], suggestion))


def download(name: str, role: Role, *, show_progress: bool) -> Path:
    """Downloads a model into the Hugging Face cache and returns its directory there.

    Files in the cache are not downloaded again; if the hub answers, they are updated.

    Raises:
        NotInstalled: the libraries for models are not installed.
        EncoderFailed: the hub did not answer, or does not provide the model.
    """
    require("models", sentence("{} can't be downloaded", name))
    # 0.3 s, and most commands do without it.
    from huggingface_hub import HfApi, constants, snapshot_download  # noqa: PLC0415
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars  # noqa: PLC0415

    (enable_progress_bars if show_progress else disable_progress_bars)()
    repository = hub_name(name, role)
    try:
        with used_for(constants.ENDPOINT):
            files = [file.rfilename for file in HfApi().model_info(repository, timeout=10).siblings or []]
        duplicates = ["*.bin"] if any(file.endswith(".safetensors") for file in files) else []
        snapshot_download(repository, ignore_patterns=[*_OTHER_FORMATS, *duplicates])
    except ProxyUnusable as error:
        raise EncoderFailed("{} could not be downloaded: {}", error.why, error.do, name, error.what) from error
    except Exception as error:  # networks and hubs fail in many classes (httpx, ssl, OSError, HfHubHTTPError)
        raise EncoderFailed(
            "{} could not be downloaded",
            "{}: {}",
            "Check the name, the network, HF_ENDPOINT and HF_HUB_OFFLINE; on a machine without a network, set a model's directory",
            name,
            type(error).__name__,
            first_line(error, missing=""),
        ) from error
    directory = cached_directory(name, role)
    fault = "it is not in the cache" if directory is None else fault_of(directory)
    if directory is None or fault:
        raise EncoderFailed(
            "{} was downloaded and can't be used", "{}", "Check that it is a sentence-transformers model", name, fault or ""
        )
    return directory


def cached_directory(name: str, role: Role) -> Path | None:
    """The model's snapshot in the Hugging Face cache, complete or not."""
    # 0.3 s, and not needed by a server without models, or with models in directories.
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

    for config in _CONFIGS:
        file = try_to_load_from_cache(hub_name(name, role), config)
        if isinstance(file, str):
            return Path(file).parent
    return None


def hub_name(name: str, role: Role) -> str:
    """The full name on the hub: `all-MiniLM-L6-v2` means `sentence-transformers/all-MiniLM-L6-v2`."""
    return name if "/" in name else f"{_ORGANIZATIONS[role]}/{name}"


def fault_of(directory: Path) -> str | None:
    """What is wrong with a model directory, as a clause; None if it looks complete."""
    if not any((directory / config).is_file() for config in _CONFIGS):
        return "it has no config.json"
    weights = weight_files(directory)
    if not weights:
        return "it has no weights (*.safetensors)"
    empty = [file for file in weights if not file.stat().st_size]
    return f"its file {empty[0].name} is empty" if empty else None


def weight_files(directory: Path) -> list[Path]:
    """The files with weights, by name, without broken links, as a cache has them after a manual cleanup."""
    return sorted(file for pattern in _WEIGHTS for file in directory.glob(pattern) if file.is_file())


def fingerprint(directory: Path) -> str:
    """Eight hex digits that differ between two models of one name: a hash of their configs and of samples of their weights.

    Hashing the whole file would take a second at every start, and training changes every part of the weights.
    """
    hasher = hashlib.sha256()
    for config in sorted(file for pattern in ("*.json", "*/config.json") for file in directory.glob(pattern) if _shapes_vectors(file)):
        hasher.update(config.read_bytes())
    for weights in weight_files(directory):
        size = weights.stat().st_size
        with weights.open("rb") as file:
            for start in (0, size // 3, size * 2 // 3, max(0, size - _SAMPLE_BYTES)):
                file.seek(start)
                hasher.update(file.read(_SAMPLE_BYTES))
        hasher.update(str(size).encode())
    return hasher.hexdigest()[:8]


def _shapes_vectors(file: Path) -> bool:
    """Excludes the file with prompts, which have a version of their own, and with library versions, which don't matter."""
    return file.is_file() and file.name in {"config.json", "modules.json", "sentence_bert_config.json"}


def _hub_problem(name: str, endpoint: str | None) -> str | None:
    """Why the hub can't provide this model, as a clause; None if it can."""
    # See `cached_directory`.
    from huggingface_hub import HfApi, constants  # noqa: PLC0415
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError  # noqa: PLC0415

    if constants.is_offline_mode():
        return "the hub is disabled (HF_HUB_OFFLINE is set)"
    try:
        with used_for(endpoint or constants.ENDPOINT):
            HfApi(endpoint=endpoint).model_info(name, timeout=HUB_TIMEOUT_SECONDS)
    except GatedRepoError:
        return f"the hub provides {name} only to users who have accepted its terms (set HF_TOKEN)"
    except (RepositoryNotFoundError, HFValidationError):
        return f"the hub has no model {name}"
    except HfHubHTTPError as error:
        return sentence("the hub answered {}", error.response.status_code)
    except Exception as error:  # noqa: BLE001  a network fails in many classes (httpx, ssl, OSError), and all mean the same here
        return sentence("the hub can't be reached ({})", error.why if isinstance(error, ProxyUnusable) else type(error).__name__)
    return None


def _packaged() -> Found | Missing:
    fault = package.fault()
    if fault is None:
        return Found(package.directory())
    if package.has_build():
        return Missing(
            sentence("{} was not found: {}. Run {}, or name another model, or null for none.", package.NAME, fault, package.INSTALL)
        )
    return Missing(sentence("{} was not found: {}. Name another model, or null for none.", package.NAME, fault))


def _alternative(role: Role) -> str:
    return f"set {_SETTINGS[role]} to a model's directory, or to null for none"


def _in_cache_or_on_hub(name: str, role: Role, hub: str | None) -> Found | Missing:
    cached = cached_directory(name, role)
    if cached and not fault_of(cached):
        return Found(cached)
    hub_problem = _hub_problem(hub_name(name, role), hub)
    if hub_problem is None:
        return Found(None)
    incomplete = "the copy in the local cache is incomplete ({})"
    copy = sentence(incomplete, fault_of(cached)) if cached else "there is no copy in the local cache"
    suggestion = package.suggestion() if role == "embedder" else ""
    return Missing(sentence(_NOT_FOUND, name, copy, hub_problem, _SETTINGS[role], suggestion))
