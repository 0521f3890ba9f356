"""What clients and commands of a process make for themselves, each the same, and which takes longer than most of what a test does with it."""

import functools

import httpcore2
import typer.testing


def share_tls_context() -> None:
    """Have every client that says nothing of certificates use the same context: each would read all of them."""
    httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)


def share_command_tree() -> None:
    """Have typer's `CliRunner` build the tree of an app's commands once, and not for every command."""
    typer.testing._get_command = functools.cache(typer.testing._get_command)  # where it is looked up
