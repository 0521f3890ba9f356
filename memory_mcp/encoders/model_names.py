"""A model's own name, in whatever way configuration names it: by it the tables of families are read."""

import re

_SAYING_NOTHING = frozenset({"model", "models", "data", "weights", "latest", "onnx"})


def own_name(model: str) -> str:
    """In lower case, with hyphens: `cl-nagoya/ruri-v3-30m`, `/models/ruri-v3-30m` and its place in a cache are all `ruri-v3-30m`.

    Directories further up say nothing of the model: it may lie in the home of a user called ko-taro.
    """
    parts: list[str] = [part.lower().replace("_", "-") for part in re.split(r"[/\\]", model) if part]
    for part in reversed(parts):
        if part.startswith("models--"):  # organisation and name, as the Hugging Face cache writes them
            return part.rpartition("--")[2]
    telling = [part for part in parts if part not in _SAYING_NOTHING]
    return telling[-1] if telling else ""
