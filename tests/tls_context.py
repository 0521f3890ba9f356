"""One TLS context for all clients of a process: each makes one of its own otherwise, and reading the certificates takes longer than a call."""

import functools

import httpcore2


def share_tls_context() -> None:
    """Have every client that says nothing of certificates use the same context."""
    httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)
