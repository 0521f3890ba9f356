"""Private data in what is stored, over HTTP."""

import json
from datetime import UTC, datetime

import pytest

from memory_mcp.store.files.access_tokens import create_token

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
CARD, MAIL, PASSWORD = "4242 4242 4242 4242", "taro@example.com", "sakura2024"
HEADERS = {"X-Persona": "nilou"}


@pytest.fixture
def scan(own_http):
    def scan(**query):
        return own_http.get("/api/privacy", params=query, headers=HEADERS).json()

    return scan


def send(http, *lines):
    http.post("/api/import", content="".join(json.dumps(line) + "\n" for line in lines).encode(), headers=HEADERS).raise_for_status()


def test_a_scan_tells_what_was_replaced_what_stands_there_and_what_may_be_private_with_masked_samples(own_server, own_http, scan):
    own_server.configure(privacy={"credit_card": "off"})
    send(own_http, {"key": "old", "content": f"カードは{CARD}。", "metadata": {"mail": MAIL}})
    own_server.configure()
    send(
        own_http,
        {"key": "new", "content": f"カードは{CARD}。"},
        {"key": "word", "content": f"パスワードは{PASSWORD}。", "deleted_at": "2025-10-29T00:00:00+00:00"},
        {"key": "none", "content": "苺が好き。"},
    )
    found = scan()
    assert {(one["key"], one["kind"], one["how"], one.get("sample")) for one in found["findings"]} == {
        ("old", "credit_card", "stored", "42…"),
        ("old", "email", "stored", "ta…"),
        ("new", "credit_card", "replaced", None),
        ("word", "api_key", "uncertain", "sa…"),
    }
    assert found["counts"]["credit_card"] == {"stored": 1, "replaced": 1}
    assert found["looked_through"] == 4
    assert found["rules"]["credit_card"] == "redact"
    assert not [secret for secret in (CARD, MAIL, PASSWORD) if secret in json.dumps(found, ensure_ascii=False)]


def test_a_scan_goes_on_where_it_ended(own_http, scan):
    send(own_http, *({"key": f"k{number}", "content": f"{number}番 taro{number}@example.com"} for number in range(5)))
    first = scan(limit=3)
    second = scan(limit=3, before=first["next"])
    assert [one["key"] for one in (*first["findings"], *second["findings"])] == ["k4", "k3", "k2", "k1", "k0"]
    assert "next" not in second


@pytest.mark.feature("dashboard")
def test_what_was_stored_before_the_rules_is_replaced_when_it_is_revised(own_server, own_http, scan):
    own_server.configure(privacy={"credit_card": "off"})
    send(own_http, {"key": "old", "content": f"カードは{CARD}。"})
    own_server.configure()
    key = re_revise(own_http)
    assert [(one["key"], one["how"]) for one in scan()["findings"]] == [(key, "replaced")]


def re_revise(http):
    page = http.get("/p/nilou/ui/house/privacy", headers={"Accept-Language": "en"}).text
    form_key = page.partition('name="form_key" value="')[2].partition('"')[0]
    answer = http.post("/p/nilou/ui/house/privacy", data={"form_key": form_key, "key": "old"}, follow_redirects=True)
    assert answer.status_code == 200
    return "old"


def test_a_scan_needs_read_and_admin_and_sees_no_foreign_persona(own_server, own_http):
    send(own_http, {"key": "a", "content": MAIL})

    def status(personas, scopes):
        secret = create_token(own_server.data, name="", personas=personas, scopes=scopes, now=NOON)[1]
        return own_http.get("/api/privacy", headers={"Authorization": f"Bearer {secret}", **HEADERS})

    assert status(None, ["read"]).status_code == 403
    assert status(None, ["admin"]).status_code == 403
    assert status(["alice"], ["read", "admin"]).json()["looked_through"] == 0
    assert status(["nilou"], ["read", "admin"]).json()["looked_through"] == 1
