"""tokens.json: what is kept, who can read it, and that a server sees every change and is never open by mistake."""

import json
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.errors import InvalidInput, StoreDamaged, StoreError
from memory_mcp.store.files import access_tokens
from memory_mcp.store.files.access_tokens import FILE_NAME, LiveTokens, create_token, id_of, matching, read_tokens, revoke_token

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)


@pytest.fixture
def create(data_directory):
    """create(personas…): a token and its secret; scopes, name and time as they don't matter."""

    def create(*personas, scopes=("read", "write"), name="", expires_at=None):
        return create_token(data_directory, name=name, personas=personas or None, scopes=scopes, now=NOON, expires_at=expires_at)

    return create


@pytest.fixture
def edit(data_directory):
    """Changes tokens.json by hand: `change` gets its tree."""

    def edit(change):
        path = data_directory / FILE_NAME
        tree = json.loads(path.read_text(encoding="utf-8"))
        change(tree)
        path.write_text(json.dumps(tree), encoding="utf-8")

    return edit


def test_without_the_file_tokens_are_not_in_use(data_directory):
    assert read_tokens(data_directory) is None
    assert LiveTokens(data_directory).current() is None


def test_a_secret_opens_its_token_and_no_other_does(data_directory, create):
    token, secret = create("nilou", "さくら", name="VS Code", expires_at=NOON + timedelta(days=1))
    other, _ = create()
    tokens = read_tokens(data_directory)
    assert dict(tokens) == {token.id: token, other.id: other}
    assert matching(tokens, secret) == token
    for wrong in ("", "mmcp_", secret[:-1], secret + "0", secret.upper(), secret.replace(token.id, other.id), "ü" * 80, "\udc80"):
        assert matching(tokens, wrong) is None


def test_a_secret_is_recognisable_long_and_says_its_id(create):
    token, secret = create("nilou")
    assert secret.startswith(f"mmcp_{token.id}_")
    assert len(secret) == 80
    assert id_of(secret) == token.id
    assert id_of("nilou") is None


def test_the_file_holds_no_secret_and_is_for_its_owner_alone(data_directory, create):
    _, secret = create("nilou")
    assert secret.rpartition("_")[2] not in (data_directory / FILE_NAME).read_text(encoding="utf-8")
    for name in (FILE_NAME, ".tokens.lock"):
        assert os.name == "nt" or (data_directory / name).stat().st_mode & 0o077 == 0


def test_a_token_is_in_force_until_it_expires_or_is_revoked(data_directory, create):
    token, _ = create("nilou", expires_at=NOON + timedelta(days=1))
    assert token.state(NOON) == "in force"
    assert token.state(NOON + timedelta(days=1)) == "expired"
    assert revoke_token(data_directory, token.id, NOON).state(NOON) == "revoked"
    assert read_tokens(data_directory)[token.id].revoked_at == NOON
    assert revoke_token(data_directory, token.id, NOON + timedelta(days=1)).revoked_at == NOON


@pytest.mark.parametrize("what", [{"personas": ()}, {"scopes": ()}, {"name": "x" * 101}, {"expires_at": NOON}])
def test_a_token_that_would_be_good_for_nothing_is_not_made(tmp_path, what):
    asked = {"name": "", "personas": ["nilou"], "scopes": TOKEN_SCOPES, "now": NOON, **what}
    with pytest.raises(InvalidInput):
        create_token(tmp_path / "memory", **asked)
    assert not (tmp_path / "memory").exists()


def test_a_token_that_nobody_has_can_not_be_revoked(tmp_path, data_directory, create):
    create("nilou")
    for directory in (data_directory, tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match="no token has the id"):
            revoke_token(directory, "0000000000", NOON)
    assert not (tmp_path / "nowhere").exists()


def test_tokens_made_at_the_same_time_are_all_kept(data_directory, create):
    threads = [threading.Thread(target=create, args=(f"persona-{number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(token.personas[0] for token in read_tokens(data_directory).values()) == sorted(f"persona-{n}" for n in range(16))


def test_a_running_server_sees_every_change_at_its_next_call(data_directory, create):
    live = LiveTokens(data_directory)
    assert live.current() is None
    token, secret = create("nilou")
    assert matching(live.current(), secret) == token
    revoke_token(data_directory, token.id, NOON)
    assert live.current()[token.id].state(NOON) == "revoked"


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.pop("version"),
        lambda tree: tree.update(version=2),
        lambda tree: tree.update(tokens={}) or tree["tokens"].update(a=1),
        lambda tree: tree["tokens"][0].pop("personas"),
        lambda tree: tree["tokens"][0].update(personas=None),
        lambda tree: tree["tokens"][0].update(personas="nilou"),
        lambda tree: tree["tokens"][0].update(personas=[1]),
        lambda tree: tree["tokens"][0].update(scopes=["everything"]),
        lambda tree: tree["tokens"][0].update(scopes="read"),
        lambda tree: tree["tokens"][0].update(fingerprint="ü"),
        lambda tree: tree["tokens"][0].update(fingerprint=None),
        lambda tree: tree["tokens"][0].pop("revoked_at"),
        lambda tree: tree["tokens"][0].update(expires_at="tomorrow"),
        lambda tree: tree["tokens"][0].update(expires_at="2026-01-01T00:00:00"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_lets_nobody_in(data_directory, create, edit, change):
    create("nilou")
    live = LiveTokens(data_directory)
    edit(change)
    with pytest.raises(StoreDamaged, match=r"tokens\.json is"):
        read_tokens(data_directory)
    with pytest.raises(StoreError, match="no call is accepted at the moment"):
        live.current()
    with pytest.raises(StoreError):
        LiveTokens(data_directory)


def test_a_file_that_is_gone_lets_nobody_in_until_it_is_back(data_directory, create):
    token, secret = create("nilou")
    live = LiveTokens(data_directory)
    path, aside = data_directory / FILE_NAME, data_directory / "aside"
    path.rename(aside)
    for _ in range(2):
        with pytest.raises(StoreError, match="no call is accepted at the moment"):
            live.current()
    aside.rename(path)
    assert matching(live.current(), secret) == token


def test_a_file_without_tokens_still_wants_one(data_directory, create, edit):
    create("nilou")
    edit(lambda tree: tree["tokens"].clear())
    assert LiveTokens(data_directory).current() == {}


def test_a_file_whose_permissions_are_mended_is_read_again(data_directory, create, monkeypatch):
    token, _ = create("nilou")
    live = LiveTokens(data_directory)
    file = data_directory / FILE_NAME
    with monkeypatch.context() as patched:
        patched.setattr(access_tokens, "read_tokens", unreadable)
        file.chmod(0o400)
        with pytest.raises(StoreError, match="can't read its tokens"):
            live.current()
    with pytest.raises(StoreError):
        live.current()
    file.chmod(0o600)
    assert list(live.current()) == [token.id]


def unreadable(_directory):
    raise StoreError("tokens.json can't be read", "", "Make it readable for the server")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files for others")
def test_tokens_that_root_makes_belong_to_who_has_the_directory(data_directory, create):
    os.chown(data_directory, 4_321, 4_321)
    create("nilou")
    assert {path.stat().st_uid for path in data_directory.iterdir()} == {4_321}
