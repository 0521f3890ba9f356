"""Where the tokens of a text are, told by a tokenizer of its own: the model's cuts and pads, and must not be told otherwise while it works."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

Span = tuple[int, int]
Spans = Callable[[str], Sequence[Span]]


class TokenSpans:
    """A fast tokenizer's tokens as places in the text, without those that a model puts around it. Any thread may ask."""

    def __init__(self, description: Callable[[], str]) -> None:
        """`description` gives the tokenizer as JSON (`tokenizer.json`). It is asked at the first long text: most servers see none."""
        self._description = description

    def __call__(self, text: str) -> list[Span]:
        """The place of each token, in order."""
        # As a batch, because only that lets other threads run meanwhile.
        (encoded,) = self._tokenizer.encode_batch([text], add_special_tokens=False)
        return [(int(start), int(end)) for start, end in encoded.offsets]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # noqa: PLC0415  only where there is a model

        own = Tokenizer.from_str(self._description())
        own.no_truncation()
        own.no_padding()
        return own
