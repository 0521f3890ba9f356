"""Whether a persona's directory or database is in truth another persona's, by a link that somebody made.

A link to another disk is the owner's business. Two personas with one database would read each other.
"""

from pathlib import Path

from memory_mcp.errors import StoreDamaged


def refuse_borrowed(directory: Path, database: str, identity: str) -> None:
    """Checks the directory of a persona that is about to be opened; `database` and `identity` are the names of two files in it.

    Raises:
        StoreDamaged: the directory, or the database in it, is that of another persona of the same data directory, too.
        OSError: it can't be looked at.
    """
    if not (directory / database).exists() or not (_is_link(directory) or _is_link(directory / database)):
        return  # the usual case, and nothing else is looked at, however many personas there are
    for other in directory.parent.iterdir():
        twin = other / database
        if other.name != directory.name and twin.exists() and twin.samefile(directory / database):
            # A copy that says it is this persona is never opened under its own directory's name.
            if (other / identity).exists() and (other / identity).read_bytes() == _bytes_of(directory / identity):
                continue
            raise StoreDamaged(
                f"the directory {directory.name} shares its database with another persona, by a link",
                "each would read the other's memories",
                "Remove the link. To give one persona a copy of the other's memories, export and import them",
            )


def _is_link(path: Path) -> bool:
    """Whether there may be another name for it: a symbolic link, or a file with several names."""
    return path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1)


def _bytes_of(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
