"""From texts to a model's inputs, with the tokenizers library alone. Models of one family share a tokenizer in memory.

A tokenizer of 100,000 pieces takes 100 MB, three times as much as the weights in int8. What differs between two models that have the
same one, the limit and the padding, is therefore done here and not by the library, which keeps both inside the tokenizer.
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
    """A tokenizer that neither cuts off nor fills up."""

    def __init__(self, file: Path) -> None:
        # The tokenizer's own threads would compete with the pool's; writing the environment is the only way to tell it.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer  # noqa: PLC0415  a server that uses torch, or no model, does without it
        from tokenizers.models import Unigram  # noqa: PLC0415

        self.tokenizer: Tokenizer = Tokenizer.from_file(str(file))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        if isinstance(self.tokenizer.model, Unigram):
            # It would keep the pieces of 10,000 texts, 18 MB, and hardly any is read twice: vectors and scores have caches of their own.
            self.tokenizer.model._resize_cache(0)  # noqa: SLF001  there is no other way to say it


class Tokenizers:
    """The tokenizers that are in use, by the checksums of their files."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[str, SharedTokenizer] = WeakValueDictionary()
        self._lock = threading.Lock()

    def get(self, file: Path, sha256: str) -> SharedTokenizer:
        """The one that was read from such a file, as long as anybody uses it."""
        with self._lock:
            known = self._known.get(sha256)
            if known is None:
                known = self._known[sha256] = SharedTokenizer(file)
            return known


class Inputs:
    """What a model wants of its tokenizer: called with texts or pairs, it gives the rows that the session takes."""

    def __init__(self, shared: SharedTokenizer, export: Export) -> None:
        self._shared = shared
        self._export = export
        self._padding = {"input_ids": export.padding.id, "attention_mask": 0, "token_type_ids": export.padding.type_id}
        whole = shared.tokenizer.num_special_tokens_to_add
        self._room = {paired: export.max_tokens - whole(paired) for paired in (False, True)}

    @property
    def room(self) -> int:
        """How many tokens of a text are read, beside the special ones."""
        return self._room[False]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the tokens of a text are in it."""
        (encoded,) = self._shared.tokenizer.encode_batch([text], add_special_tokens=False)  # not the fast one: that tells no places
        return [(int(start), int(end)) for start, end in encoded.offsets]

    def __call__(self, texts: Sequence[str] | Sequence[Pair]) -> dict[str, Rows]:
        """For each input an array of shape (texts, tokens of the longest)."""
        pairs = [(text, None) if isinstance(text, str) else text for text in texts]
        firsts = self._encoded([first for first, _ in pairs])
        seconds = self._encoded([second for _, second in pairs if second is not None])
        rows = [self._joined(first, seconds[number] if seconds else None) for number, first in enumerate(firsts)]
        longest = max(len(row.ids) for row in rows)
        return {name: self._filled(name, rows, longest) for name in self._export.inputs}

    def _encoded(self, texts: list[str]) -> "list[Encoding]":
        return self._shared.tokenizer.encode_batch_fast(texts, add_special_tokens=False) if texts else []

    def _joined(self, first: "Encoding", second: "Encoding | None") -> "Encoding":
        room = self._room[second is not None]
        lengths = (min(len(first), room), 0) if second is None else _longest_first(len(first), len(second), room)
        for part, length in ((first, lengths[0]), (second, lengths[1])):
            if part is not None and len(part) > length:
                part.truncate(length, direction=self._export.truncation_side)
        return self._shared.tokenizer.post_process(first, second)

    def _filled(self, name: str, rows: "list[Encoding]", longest: int) -> Rows:
        filled: Rows = np.full((len(rows), longest), self._padding[name], np.int64)
        for row, encoding in zip(filled, rows, strict=True):
            values = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}[name]
            begin = 0 if self._export.padding.side == "right" else longest - len(values)
            row[begin : begin + len(values)] = values
        return filled


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of each are kept: the longer one gives way, until both are alike. As the library does it."""
    shorter, longer = sorted((first, second))
    longer = min(longer, max(shorter, room - shorter))
    if shorter + longer > room:
        shorter, longer = room // 2, room - room // 2
    return (shorter, longer) if first <= second else (longer, shorter)
