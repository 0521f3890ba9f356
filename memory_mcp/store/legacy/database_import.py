"""The memories of a database that lies anywhere, as rows for an import. The file itself is not touched: a copy of it is read."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.errors import InvalidInput
from memory_mcp.store.legacy import original_files, row_conversion, table_adoption

_OURS_ALONE = ("id", "write_digest", "micro_summary")
_FURTHER = ("category", "privacy_level")
_AS_JSON = ("tags", "state", "questions", "metadata")


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Each row of its table `memories` by the fields of a JSON line, in order. Fields without a value are left out.

    Raises:
        InvalidInput: it holds no such table, or is damaged; what came before was good.
    """
    with tempfile.TemporaryDirectory(prefix="memory-mcp-") as place:
        # With what lies beside it: changes that are not in the file yet.
        for file in (path, *original_files.sidecars(path)):
            shutil.copyfile(file, Path(place, file.name))
        connection = apsw.Connection(str(Path(place, path.name)))
        try:
            if not connection.table_exists(None, table_adoption.MEMORIES):
                raise InvalidInput(f"{path.name} has no table of memories", "", "Choose the database of a memory server")
            now = datetime.now(UTC)
            taken: set[str] = set()
            for number, row in enumerate(table_adoption.rows(connection, table_adoption.MEMORIES), start=1):
                # Of our own files: what means something in its file alone, or is made anew.
                for name in _OURS_ALONE if "write_digest" in row else ():
                    row.pop(name, None)
                values = row_conversion.adopted(row, taken, number, now, _FURTHER).values
                taken.add(values["key"])
                yield {name: json.loads(value) if name in _AS_JSON else value for name, value in values.items() if value is not None}
        except apsw.Error as error:
            raise InvalidInput(f"{path.name} can't be read", str(error), "Run `PRAGMA integrity_check` on a copy of it") from error
        finally:
            connection.close()
