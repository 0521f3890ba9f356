"""Turns texts into a model's inputs, with the tokenizers library only. Models of one family share a tokenizer in memory.

A tokenizer of 100,000 pieces takes 100 MB, three times as much as the weights in int8. Truncation and padding, in which two models with
the same tokenizer differ, are therefore done here and not by the library, which stores both settings in the tokenizer.
"""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from memory_mcp.encoders.onnx.export_directory import Export
from memory_mcp.encoders.reranking import Pair

if TYPE_CHECKING:
    from tokenizers import Encoding

Rows = npt.NDArray[np.int64]


class SharedTokenizer:
    """A tokenizer that neither truncates nor pads."""

    def __init__(self, file: Path) -> None:
        # The tokenizer's own threads would compete with the pool's; only the environment can turn them off.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer  # noqa: PLC0415  a server that uses torch, or no model, doesn't need it
        from tokenizers.models import Unigram  # noqa: PLC0415

        self.tokenizer: Tokenizer = Tokenizer.from_file(str(file))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        if isinstance(self.tokenizer.model, Unigram):
            # Its cache would keep the pieces of 10,000 texts, 18 MB, of which few are reused: vectors and scores have their own caches.
            self.tokenizer.model._resize_cache(0)  # noqa: SLF001  there is no public way


class Tokenizers:
    """The tokenizers in use, by the checksums of their files."""

    def __init__(self) -> None:
        self._in_use: WeakValueDictionary[str, SharedTokenizer] = WeakValueDictionary()
        self._lock = threading.Lock()

    def get(self, file: Path, sha256: str) -> SharedTokenizer:
        """The tokenizer of this file; shared for as long as a model uses it."""
        with self._lock:
            tokenizer = self._in_use.get(sha256)
            if tokenizer is None:
                tokenizer = self._in_use[sha256] = SharedTokenizer(file)
            return tokenizer


class Inputs:
    """A model's tokenization: calling it with texts or pairs returns the arrays that the session takes."""

    def __init__(self, shared: SharedTokenizer, export: Export) -> None:
        self._shared = shared
        self._export = export
        self._padding = {"input_ids": export.padding.id, "attention_mask": 0, "token_type_ids": export.padding.type_id}
        special_tokens = shared.tokenizer.num_special_tokens_to_add
        self._max_tokens = {paired: export.max_tokens - special_tokens(paired) for paired in (False, True)}

    @property
    def max_text_tokens(self) -> int:
        """How many tokens of a text are read, without the special ones."""
        return self._max_tokens[False]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token of a text."""
        (encoded,) = self._shared.tokenizer.encode_batch([text], add_special_tokens=False)  # the fast method gives no offsets
        return [(int(start), int(end)) for start, end in encoded.offsets]

    def __call__(self, texts: Sequence[str] | Sequence[Pair]) -> dict[str, Rows]:
        """An array of shape (texts, tokens of the longest) for each input."""
        pairs = [(text, None) if isinstance(text, str) else text for text in texts]
        firsts = self._encoded([first for first, _ in pairs])
        seconds = self._encoded([second for _, second in pairs if second is not None])
        rows = [self._joined(first, seconds[number] if seconds else None) for number, first in enumerate(firsts)]
        longest = max(len(row.ids) for row in rows)
        return {name: self._padded(name, rows, longest) for name in self._export.inputs}

    def _encoded(self, texts: list[str]) -> "list[Encoding]":
        return self._shared.tokenizer.encode_batch_fast(texts, add_special_tokens=False) if texts else []

    def _joined(self, first: "Encoding", second: "Encoding | None") -> "Encoding":
        limit = self._max_tokens[second is not None]
        lengths = (min(len(first), limit), 0) if second is None else _longest_first(len(first), len(second), limit)
        for part, length in ((first, lengths[0]), (second, lengths[1])):
            if part is not None and len(part) > length:
                part.truncate(length, direction=self._export.truncation_side)
        return self._shared.tokenizer.post_process(first, second)

    def _padded(self, name: str, rows: "list[Encoding]", longest: int) -> Rows:
        padded: Rows = np.full((len(rows), longest), self._padding[name], np.int64)
        for row, encoding in zip(padded, rows, strict=True):
            values = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}[name]
            start = 0 if self._export.padding.side == "right" else longest - len(values)
            row[start : start + len(values)] = values
        return padded


def _longest_first(first: int, second: int, limit: int) -> tuple[int, int]:
    """How many tokens of each are kept: the longer one is truncated until both are equal, as the library's `longest_first` does."""
    shorter, longer = sorted((first, second))
    longer = min(longer, max(shorter, limit - shorter))
    if shorter + longer > limit:
        shorter, longer = limit // 2, limit - limit // 2
    return (shorter, longer) if first <= second else (longer, shorter)
