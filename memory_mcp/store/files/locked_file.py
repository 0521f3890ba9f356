"""Private JSON files of the data directory that commands and servers write in turn, and that a server notices the change of."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import AwareDatetime, PlainSerializer, TypeAdapter, ValidationError

from memory_mcp.errors import StoreDamaged, StoreError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, refusal, write_atomically
from memory_mcp.store.timestamps import to_text

LOCK_SECONDS = 10
VERSION = 1

Stamp = tuple[int, ...]
Tree = TypeVar("Tree")
# A time in such a file.
Moment = Annotated[AwareDatetime, PlainSerializer(to_text)]


@contextmanager
def locked(directory: Path, name: str) -> Iterator[None]:
    """Serialize the writers of the file `name`. The directory is created if necessary."""
    try:
        directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        with FileLock(_lock_of(directory, name), mode=0o600, timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise StoreError("{} can't be written", "another command is writing it", "Try again", name) from None
    except OSError as error:
        raise refusal(error, f"{name} can't be written", "Make the data directory writable for you") from error


def read_private(directory: Path, name: str, form: TypeAdapter[Tree], do: str) -> Tree | None:
    """The content of a file with a field `version`; None if there is no file. A missing field or a wrong type makes the file unusable: nothing
    is guessed. `do`: the advice about an unusable one.

    Raises:
        StoreError: the file exists but can't be used.
    """
    try:
        content = (directory / name).read_bytes()
        if (written := json.loads(content)["version"]) != VERSION:
            raise StoreDamaged("{} is of another version", "{} and not {}", "Update Memory MCP", name, repr(written), VERSION)
        return form.validate_json(content, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError("{} can't be read", "{}", "Make it readable for the server", name, error.strerror or str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise StoreDamaged("{} is invalid", "{} {}", do, name, ".".join(map(str, first["loc"])), first["msg"]) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreDamaged("{} is invalid", "{} {}", do, name, type(error).__name__, error) from error


def write_private(directory: Path, name: str, tree: Any) -> None:
    """Replace the file, which is locked by the caller."""
    write_atomically(directory / name, json.dumps(tree, ensure_ascii=False, indent=2) + "\n")
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # `sudo memory-mcp token create`: the server must be able to read it
        owner = directory.stat()
        for path in (directory / name, _lock_of(directory, name)):
            os.chown(path, owner.st_uid, owner.st_gid)


def stamp_of(path: Path) -> Stamp | None:
    """Values that change with the file's content; the last one also with its owner and permissions, which may have been the reason for
    an error.
    """
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns)


def _lock_of(directory: Path, name: str) -> Path:
    return directory / f".{Path(name).stem}.lock"
