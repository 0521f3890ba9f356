"""Reads the points of a local Qdrant store, which are pickles, without running anything that they name."""

import io
import json
import pickle
from typing import Any

import apsw

POINT_LIMIT_BYTES = 16 * 1024 * 1024


class _Inert:
    """Replaces any class or function that a pickle names, and ignores its arguments."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Reader(pickle.Unpickler):
    def find_class(self, _module: str, _name: str) -> Any:
        return _Inert


def register(connection: apsw.Connection) -> None:
    """Give a connection the SQL function `payload(point)`: the id and the payload of a point as JSON; NULL for anything else."""
    connection.create_scalar_function("payload", _payload, 1, deterministic=True)


def _payload(*values: Any) -> str | None:
    (point,) = values
    if not isinstance(point, bytes) or len(point) > POINT_LIMIT_BYTES:
        return None
    try:
        read = _Reader(io.BytesIO(point)).load()
        state = read.state if isinstance(read, _Inert) else None
        fields = state["__dict__"] if isinstance(state, dict) else {}
        known = isinstance(fields.get("payload"), dict)
        return json.dumps({"id": str(fields["id"]), "payload": fields["payload"]}, ensure_ascii=False, default=str) if known else None
    except Exception:  # noqa: BLE001  a broken pickle can fail in any way; its row is refused by its name
        return None
