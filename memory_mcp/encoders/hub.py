"""Downloading a model into the local cache of Hugging Face, so that it is there without a network from then on."""

from pathlib import Path

from memory_mcp.encoders.loading.availability import Role, cached_directory, fault_of, hub_name
from memory_mcp.errors import EncoderFailed

# The same weights for other libraries.
_NOT_OURS = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "coreml/*", "*.mlmodel"]


def download(name: str, role: Role, *, show_progress: bool) -> Path:
    """The directory in the cache. What is there already is not loaded again; with a hub that answers it is brought up to date.

    Raises:
        EncoderFailed: the hub could not be asked, or does not give the model.
    """
    # 0.3 s, and most commands do without it.
    from huggingface_hub import HfApi, snapshot_download  # noqa: PLC0415
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars  # noqa: PLC0415

    (enable_progress_bars if show_progress else disable_progress_bars)()
    repository = hub_name(name, role)
    try:
        offered = [file.rfilename for file in HfApi().model_info(repository, timeout=10).siblings or []]
        twice = ["*.bin"] if any(file.endswith(".safetensors") for file in offered) else []
        snapshot_download(repository, ignore_patterns=[*_NOT_OURS, *twice])
    except Exception as error:  # networks and hubs fail in many classes (httpx, ssl, OSError, HfHubHTTPError)
        said = next(iter(str(error).strip().splitlines()), "")
        raise EncoderFailed(
            f"{name} could not be downloaded",
            f"{type(error).__name__}: {said.rstrip('.')}",
            "Check the name, the network, HF_ENDPOINT and HF_HUB_OFFLINE; on a machine without a network, set a model's directory",
        ) from error
    directory = cached_directory(name, role)
    fault = "it is not in the cache" if directory is None else fault_of(directory)
    if directory is None or fault:
        raise EncoderFailed(f"{name} was downloaded and can't be used", fault or "", "Check that it is a sentence-transformers model")
    return directory
