"""What a library written in Rust, such as a tokenizer, raises where it panics."""


class Panicked(BaseException):
    """No `Exception`: whoever catches only those lets it pass."""
