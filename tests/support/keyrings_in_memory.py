"""A keyring of the system that a test may fill."""

from collections.abc import Iterator

import keyring
import keyring.backend
import pytest


class Drawer(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


@pytest.fixture
def drawer() -> Iterator[Drawer]:
    before = keyring.get_keyring()
    mine = Drawer()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)
