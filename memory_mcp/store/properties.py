"""Single values of a persona's database by their names, such as the generation of vectors that recall uses."""

import apsw


def value(connection: apsw.Connection, name: str) -> str | None:
    """The value of this name; None if there is none."""
    stored: str | None = connection.execute("SELECT value FROM properties WHERE name = ?", (name,)).get
    return stored


def put(connection: apsw.Connection, name: str, new_value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (name, new_value))


def remove(connection: apsw.Connection, name: str) -> None:
    connection.execute("DELETE FROM properties WHERE name = ?", (name,))
